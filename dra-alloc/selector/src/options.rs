//! Choice of the environment that an expression is compiled in.

use dra_attrs::internal::release::{CelAttributes, CelRules, ListFunctions};
use dra_attrs::{Gate, GateSet, Profile};

use super::declarations::names::DeviceFields;

/// Environment of an expression and limit of its evaluations.
///
/// ```
/// use dra_selector::{Options, Selector};
/// use dra_attrs::{Gate, GateSet};
///
/// let gates = GateSet::all().without(Gate::ListTypeAttributes);
/// let expression = "device.attributes['gpu.example'].numaNode.includes(1)";
/// assert!(Selector::compile(expression, &Options::new_expression(gates)).is_err());
/// assert!(Selector::compile(expression, &Options::stored()).is_ok());
/// ```
///
/// The environment is that of Kubernetes 1.37 unless [`Options::with_profile`] says another release.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    cel: CelRules,
    /// Feature gates, which count for new expressions; `None` for those of stored objects.
    gates: Option<GateSet>,
    /// Largest cost of an evaluation, in Kubernetes' units.
    pub(super) cost_limit: u64,
}

impl Options {
    /// Largest cost that Kubernetes lets an expression be estimated at, and an evaluation have.
    pub const COST_LIMIT: u64 = 1_000_000;

    /// Returns the environment of expressions of stored objects, as kube-scheduler evaluates them, with Kubernetes' limit:
    /// everything is there, whatever the gates.
    #[must_use]
    pub fn stored() -> Self {
        Self { cel: Profile::V1_37.rules().cel, gates: None, cost_limit: Self::COST_LIMIT }
    }

    /// Returns the environment of expressions of objects that are created or changed: what a gate adds is there only while
    /// the gate is on.
    #[must_use]
    pub fn new_expression(gates: GateSet) -> Self {
        Self { gates: Some(gates), ..Self::stored() }
    }

    /// Replaces the release: earlier ones lack functions, and those without the gate of lists know no attribute that is one.
    ///
    /// ```
    /// use dra_attrs::{GateSet, Profile};
    /// use dra_selector::{Options, Selector};
    ///
    /// let expression = "lists.range(3).exists(i, i == device.attributes['gpu.example'].index)";
    /// let new = |profile| Options::new_expression(GateSet::of(profile)).with_profile(profile);
    /// assert!(Selector::compile(expression, &new(Profile::V1_34)).is_err());
    /// assert!(Selector::compile(expression, &new(Profile::V1_35)).is_ok());
    /// assert!(Selector::compile(expression, &Options::stored().with_profile(Profile::V1_34)).is_ok());
    /// ```
    #[must_use]
    pub const fn with_profile(self, profile: Profile) -> Self {
        Self { cel: profile.rules().cel, ..self }
    }

    /// Replaces the limit of an evaluation's cost.
    #[must_use]
    pub const fn with_cost_limit(self, cost_limit: u64) -> Self {
        Self { cost_limit, ..self }
    }

    pub(super) fn fields(&self) -> DeviceFields {
        let is_on = |gate| self.gates.is_none_or(|gates| gates.has(gate));
        let lists = match self.cel.attributes {
            CelAttributes::Values => false,
            CelAttributes::ValuesAndLists => is_on(Gate::ListTypeAttributes),
        };
        let functions = if self.gates.is_none() { ListFunctions::All } else { self.cel.new_functions };
        DeviceFields { sharing: is_on(Gate::ConsumableCapacity), lists, functions }
    }
}
