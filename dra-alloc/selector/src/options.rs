//! Choice of the environment that an expression is compiled in.

use dra_attrs::{DraGate, GateSet};

use super::declarations::names::DeviceFields;

/// Origin of an expression: it decides which parts of the language there are.
///
/// ```
/// use dra_selector::{Mode, Options};
/// assert_eq!(Options::stored().mode, Mode::Stored);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Expression of a stored object, as kube-scheduler evaluates it: everything is there, whatever the gates.
    Stored,
    /// Expression of an object that is created or changed: what a gate adds is there only while the gate is on.
    New,
}

/// Environment of an expression and limit of its evaluations.
///
/// ```
/// use dra_selector::{Options, Selector};
/// use dra_attrs::{DraGate, GateSet};
///
/// let gates = GateSet::all().without(DraGate::ListTypeAttributes);
/// let expression = "device.attributes['gpu.example'].numaNode.includes(1)";
/// assert!(Selector::compile(expression, &Options::new_expression(gates)).is_err());
/// assert!(Selector::compile(expression, &Options::stored()).is_ok());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Origin of the expression.
    pub mode: Mode,
    /// Feature gates, which count for new expressions.
    pub gates: GateSet<DraGate>,
    /// Largest cost of an evaluation, in Kubernetes' units.
    pub cost_limit: u64,
}

impl Options {
    /// Largest cost that Kubernetes lets an expression be estimated at, and an evaluation have.
    pub const COST_LIMIT: u64 = 1_000_000;

    /// Returns the environment of stored expressions, with Kubernetes' limit.
    ///
    /// ```
    /// # use dra_selector::Options;
    /// assert_eq!(Options::stored().cost_limit, Options::COST_LIMIT);
    /// ```
    #[must_use]
    pub fn stored() -> Self {
        Self { mode: Mode::Stored, gates: GateSet::all(), cost_limit: Self::COST_LIMIT }
    }

    /// Returns the environment of expressions that are created or changed while gates are on or off.
    ///
    /// ```
    /// # use dra_selector::{Mode, Options};
    /// # use dra_attrs::GateSet;
    /// assert_eq!(Options::new_expression(GateSet::default()).mode, Mode::New);
    /// ```
    #[must_use]
    pub fn new_expression(gates: GateSet<DraGate>) -> Self {
        Self { mode: Mode::New, gates, cost_limit: Self::COST_LIMIT }
    }

    /// Replaces the limit of an evaluation's cost.
    ///
    /// ```
    /// # use dra_selector::Options;
    /// assert_eq!(Options::stored().with_cost_limit(100).cost_limit, 100);
    /// ```
    #[must_use]
    pub const fn with_cost_limit(self, cost_limit: u64) -> Self {
        Self { cost_limit, ..self }
    }

    pub(super) fn fields(&self) -> DeviceFields {
        let is_on = |gate| self.mode == Mode::Stored || self.gates.has(gate);
        DeviceFields { sharing: is_on(DraGate::ConsumableCapacity), lists: is_on(DraGate::ListTypeAttributes) }
    }
}
