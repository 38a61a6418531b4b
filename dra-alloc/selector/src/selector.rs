//! Compiled expressions: the stages from a text to a program, and its evaluation.

use k8s_openapi::api::resource::v1::DeviceAttribute;

use crate::check::{self, Checked};
use crate::cost::estimate::estimate;
use crate::cost::too_complex::TooComplex;
use crate::device::soundness;
use crate::direct::{self, Direct};
use crate::error::{CompileError, EvaluationError, Report};
use crate::facts::Facts;
use crate::input::SelectorInput;
use crate::meter::{Bound, Meter};
use crate::options::Options;
use crate::program::{self, Program};
use crate::result::{self, Evaluation, Value};
use crate::syntax::grammar::parse;
use crate::types::{self, Type};
use crate::value;

/// Largest length of an expression that the API server stores, in bytes.
pub const EXPRESSION_LIMIT: usize = 10 * 1024;

/// Compiled CEL expression over a device.
///
/// ```
/// use dra_selector::{Options, Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};
///
/// let near = Selector::compile("device.attributes['resource.kubernetes.io'].numaNode.includes(4)", &Options::stored())?;
/// let numa = |attribute| Device {
///     attributes: Some([("resource.kubernetes.io/numaNode".to_owned(), attribute)].into()),
///     ..Default::default()
/// };
/// let list = numa(DeviceAttribute { ints: Some(vec![6, 4, 5, 7]), ..Default::default() });
/// let scalar = numa(DeviceAttribute { int: Some(6), ..Default::default() });
/// assert_eq!(near.matches(SelectorInput::new("gpu.example", &list)), Ok(true));
/// assert_eq!(near.matches(SelectorInput::new("gpu.example", &scalar)), Ok(false));
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Debug)]
pub struct Selector {
    expression: String,
    pub(crate) program: Program,
    result: String,
    estimated: (u64, u64),
    too_complex: Option<Box<TooComplex>>,
    cost_limit: u64,
    facts: Facts,
    /// Memory, in bytes.
    memory: usize,
    /// Direct form, which is tried before the program.
    direct: Option<Direct>,
    /// Price of the direct form, in parts of a unit of a search's work.
    direct_parts: u64,
}

impl Selector {
    /// Compiles a selector: an expression that is true or false.
    ///
    /// Takes time linear in the length of the text, at most 100,000 code points.
    ///
    /// # Errors
    /// The reason that the expression is rejected. An expression that is too expensive is not:
    /// [`Selector::estimated_cost`] tells.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert!(Selector::compile("device.attributes['gpu.example'].healthy", &Options::stored()).is_ok());
    /// assert!(Selector::compile("device.driver", &Options::stored()).is_err());
    /// ```
    pub fn compile(expression: &str, options: &Options) -> Result<Self, CompileError> {
        Self::compile_as(expression, options, |checked| {
            let of = checked.type_of(checked.root);
            // An attribute's value may be a bool.
            let is_attribute = if checked.fields.lists { of == Type::Dyn } else { of == Type::Any };
            if of == Type::Bool || is_attribute {
                return Ok(());
            }
            Err(CompileError::NotBool { actual: checked.result_name(checked.root) })
        })
    }

    /// Compiles the expression of a derived attribute: its result is an attribute's value.
    ///
    /// # Errors
    /// The reason that the expression is rejected.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert!(Selector::compile_derived("device.driver", &Options::stored()).is_ok());
    /// assert!(Selector::compile_derived("1.5", &Options::stored()).is_err());
    /// ```
    pub fn compile_derived(expression: &str, options: &Options) -> Result<Self, CompileError> {
        Self::compile_as(expression, options, |checked| {
            let scalar = |of: Type| {
                let is_plain = matches!(of, Type::Bool | Type::Int | Type::String);
                is_plain || of.is_open() || of == Type::Message(types::SEMVER)
            };
            let fits = match checked.type_of(checked.root) {
                Type::List(element) => scalar(checked.types.get(element)),
                of => scalar(of),
            };
            if fits { Ok(()) } else { Err(CompileError::NotAttribute { actual: checked.result_name(checked.root) }) }
        })
    }

    /// Compiles an expression of any type, to evaluate it for its value.
    ///
    /// # Errors
    /// The reason that the expression is rejected.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert_eq!(Selector::compile_any("[1, 2].map(x, x * 2)", &Options::stored())?.result_type(), "list(int)");
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    pub fn compile_any(expression: &str, options: &Options) -> Result<Self, CompileError> {
        Self::compile_as(expression, options, |_| Ok(()))
    }

    fn compile_as(
        expression: &str,
        options: &Options,
        fits: impl FnOnce(&Checked<'_>) -> Result<(), CompileError>,
    ) -> Result<Self, CompileError> {
        let report = |issues| Report::new(expression, issues);
        let (tree, root) = parse(expression, options.fields().functions)
            .map_err(|issues| CompileError::Syntax { report: report(issues) })?;
        let checked = check::check(tree, root, options.fields())
            .map_err(|issues| CompileError::Type { report: report(issues) })?;
        fits(&checked)?;
        let (estimated, too_complex) = estimate(&checked, expression);
        let program = program::plan(&checked).map_err(|message| CompileError::Program { message })?;
        // A part of the text becomes at most one constant, and an entry of a set of constants.
        let memory = size_of::<Self>() + 2 * expression.len() + checked.tree.len() * 100 + program.memory();
        let direct = if expression.len() <= EXPRESSION_LIMIT { Direct::recognize(&checked) } else { None };
        Ok(Self {
            expression: expression.to_owned(),
            program,
            result: checked.result_name(root),
            estimated: (estimated.min, estimated.max),
            too_complex: too_complex.map(Box::new),
            cost_limit: options.cost_limit,
            facts: Facts::of(&checked),
            memory,
            direct_parts: direct::parts(&checked),
            // The direct forms cost less than Kubernetes' limit, but do not say what they cost.
            direct: direct.filter(|_| options.cost_limit >= Options::COST_LIMIT),
        })
    }

    /// Returns the text of the expression.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert_eq!(Selector::compile("true", &Options::stored())?.expression(), "true");
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the type of the result, as Kubernetes names it.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert_eq!(Selector::compile("true", &Options::stored())?.result_type(), "bool");
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn result_type(&self) -> &str {
        &self.result
    }

    /// Returns the least and the most that an evaluation is estimated to cost, in Kubernetes' units. The API server
    /// refuses an expression whose most is above [`Options::COST_LIMIT`]; `u64::MAX` stands for a size that is not known.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// let selector = Selector::compile("device.driver == 'gpu.example'", &Options::stored())?;
    /// assert_eq!(selector.estimated_cost(), (3, 4));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub const fn estimated_cost(&self) -> (u64, u64) {
        self.estimated
    }

    /// Returns the reason that the API server refuses the expression because of what it could cost; `None` if it does not.
    #[must_use]
    pub fn too_complex(&self) -> Option<&TooComplex> {
        self.too_complex.as_deref()
    }

    /// Returns true if the expression reads only `device.driver` of the device. One evaluation then serves all devices
    /// of a driver that have no invalid attribute.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert!(Selector::compile("device.driver == 'gpu.example'", &Options::stored())?.depends_only_on_driver());
    /// assert!(!Selector::compile("device.allowMultipleAllocations", &Options::stored())?.depends_only_on_driver());
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub const fn depends_only_on_driver(&self) -> bool {
        self.facts.only_driver
    }

    /// Returns the driver whose devices alone can match; `None` if the expression does not say so at its top.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// let selector = Selector::compile("device.driver == 'gpu.example' && true", &Options::stored())?;
    /// assert_eq!(selector.pinned_driver(), Some("gpu.example"));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn pinned_driver(&self) -> Option<&str> {
        self.facts.driver.as_deref()
    }

    /// Returns domain and id of the attributes that the expression can read, in order; `None` if that is only known when
    /// it is evaluated.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// let selector = Selector::compile("device.attributes['gpu.example'].healthy", &Options::stored())?;
    /// assert_eq!(selector.attributes_read(), Some(&[("gpu.example".to_owned(), "healthy".to_owned())][..]));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn attributes_read(&self) -> Option<&[(String, String)]> {
        self.facts.attributes.as_deref()
    }

    /// Returns domain and id of the capacities that the expression can read, in order; `None` if that is only known when it
    /// is evaluated.
    pub(crate) fn capacities_read(&self) -> Option<&[(String, String)]> {
        self.facts.capacities.as_deref()
    }

    /// Returns true if the expression reads nothing of the device: it is true for all devices, or for none.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// assert!(Selector::compile("1 < 2", &Options::stored())?.is_constant());
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub const fn is_constant(&self) -> bool {
        self.facts.is_constant
    }

    /// Returns true if the expression holds for a device.
    ///
    /// # Errors
    /// The reason that the evaluation fails. It always fails for a device with an invalid attribute, even if the
    /// expression does not read it.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector, SelectorInput};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let device = Device::default();
    /// let input = SelectorInput::new("gpu.example", &device);
    /// let selector = Selector::compile("has(device.attributes['gpu.example'].model)", &Options::stored())?;
    /// assert_eq!(selector.matches(input), Ok(false));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    pub fn matches(&self, input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
        soundness::check(input.device)?;
        match self.answer(input) {
            Some((answer, _)) => Ok(answer),
            None => self.run_within(input, Bound::NONE).0,
        }
    }

    /// Evaluates the expression for its value and its cost.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector, SelectorInput, Value};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let sum = Selector::compile_any("1 + 2", &Options::stored())?;
    /// let evaluation = sum.evaluate(SelectorInput::new("gpu.example", &Device::default()));
    /// assert_eq!((evaluation.result, evaluation.cost), (Ok(Value::Int(3)), 1));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn evaluate(&self, input: SelectorInput<'_>) -> Evaluation {
        let is_selector = matches!(self.result.as_str(), "bool" | "dyn" | "google.protobuf.Any");
        let (result, cost) = match soundness::check(input.device) {
            Err(error) => (Err(error), 0),
            Ok(()) if is_selector => {
                let (result, cost) = self.run(&input, result::truth);
                (result.map(Value::Bool), cost)
            }
            Ok(()) => self.run(&input, |value, meter| Value::of(value, meter).map_err(EvaluationError::from_fault)),
        };
        Evaluation { result, cost }
    }

    /// Returns the value of the expression as an attribute.
    ///
    /// # Errors
    /// The reason that the evaluation fails. It always fails for a device with an invalid attribute, even if the
    /// expression does not read it.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector, SelectorInput};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let device = Device::default();
    /// let input = SelectorInput::new("gpu.example", &device);
    /// let vendor = Selector::compile_derived("device.driver.split('.')[0]", &Options::stored())?.derive(input).unwrap();
    /// assert_eq!(vendor.string.as_deref(), Some("gpu"));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    pub fn derive(&self, input: SelectorInput<'_>) -> Result<DeviceAttribute, EvaluationError> {
        self.derive_within(input, Bound::NONE).0
    }

    /// Runs the program on a device whose attributes and capacities are valid; returns what is read from its value, and
    /// the cost.
    fn run<T>(
        &self,
        input: &SelectorInput<'_>,
        read: impl FnOnce(&value::Value<'_>, &mut Meter<'_>) -> Result<T, EvaluationError>,
    ) -> (Result<T, EvaluationError>, u64) {
        let mut meter = Meter::new(self.cost_limit, Bound::NONE);
        (self.run_with(&mut meter, input, read), meter.cost())
    }

    /// Runs the program within a bound; returns what is read from its value, and the price in parts of a unit of a search's
    /// work.
    fn priced<T>(
        &self,
        input: &SelectorInput<'_>,
        bound: Bound<'_>,
        read: impl FnOnce(&value::Value<'_>, &mut Meter<'_>) -> Result<T, EvaluationError>,
    ) -> (Result<T, EvaluationError>, u64) {
        let mut meter = Meter::new(self.cost_limit, bound);
        (self.run_with(&mut meter, input, read), meter.parts())
    }

    fn run_with<T>(
        &self,
        meter: &mut Meter<'_>,
        input: &SelectorInput<'_>,
        read: impl FnOnce(&value::Value<'_>, &mut Meter<'_>) -> Result<T, EvaluationError>,
    ) -> Result<T, EvaluationError> {
        meter.reserve(self.program.compilation());
        read(&self.program.run(input, meter).map_err(EvaluationError::from_fault)?, meter)
    }
}

/// Evaluation as a part of a search, which pays for it in parts of a unit of its work.
impl Selector {
    /// Evaluates the direct form, for a device whose attributes and capacities all have valid values
    /// ([`is_sound`](crate::device::soundness::is_sound)). Returns the price too; `None` if the program has to answer.
    #[inline]
    pub(crate) fn answer(&self, input: SelectorInput<'_>) -> Option<(bool, u64)> {
        Some((self.direct.as_ref()?.evaluate(input)?, self.direct_parts))
    }

    pub(crate) const fn direct_parts(&self) -> u64 {
        self.direct_parts
    }

    /// Runs the program for a device whose attributes and capacities all have valid values. Returns the price too.
    pub(crate) fn run_within(
        &self,
        input: SelectorInput<'_>,
        bound: Bound<'_>,
    ) -> (Result<bool, EvaluationError>, u64) {
        self.priced(&input, bound, result::truth)
    }

    /// Evaluates like [`Selector::derive`]. Returns the price too.
    pub(crate) fn derive_within(
        &self,
        input: SelectorInput<'_>,
        bound: Bound<'_>,
    ) -> (Result<DeviceAttribute, EvaluationError>, u64) {
        match soundness::check(input.device) {
            Ok(()) => self.priced(&input, bound, result::attribute),
            Err(error) => (Err(error), 0),
        }
    }

    /// Returns true if the expression has a direct form, which costs less than to remember its answers.
    pub(crate) const fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Returns the memory of the compiled expression, in bytes, roughly: its patterns count with the estimated size of their
    /// compiled forms.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }
}
