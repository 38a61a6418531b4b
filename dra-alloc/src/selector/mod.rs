//! CEL selectors over one device, in the environment of Kubernetes.
//!
//! An expression reads the variable `device`: `device.driver`, `device.allowMultipleAllocations`,
//! `device.attributes[domain][id]` and `device.capacity[domain][id]`. A name in the device without a domain belongs to
//! the domain of the driver. An unknown domain is an empty map; an unknown id is an error, unless the expression asks
//! with `has()`, `in`, `.?` or `[?]`.
//!
//! Besides CEL's own there are `cel.bind`, macros with two variables, optional values, quantities, versions, IP
//! addresses and networks, `includes`, regular expressions, and the string, list and set libraries. Loops over maps use
//! the sorted keys.
//!
//! # Bounds
//! Expressions are not trusted. Their length, their nesting and the length of their chains (`a.b().c()`, `a + b + c`;
//! not `&&`, `||` and commas) are limited, and an evaluation has a budget for loop iterations and for the size of
//! values. An exhausted budget is an error even where `||` or `&&` would have absorbed it.
//!
//! # Difference from Kubernetes
//! There is no complete type checker: what is not inferred is found when the expression is evaluated.
//!
//! Source: `dynamic-resource-allocation/cel` of Kubernetes 1.37 with the environment for stored expressions.

mod attribute;
mod cache;
mod check;
mod device;
mod direct;
mod environment;
mod error;
pub(crate) mod expression;
mod fuel;
mod functions;
mod lazy;
mod lexical;
mod macros;
mod meter;
mod names;
mod opaque;
mod overload;
mod tree;
mod two_variables;
mod types;

use cel::Value;
use cel::common::ast::IdedExpr;
use cel::common::value::Val;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

pub use cache::SelectorCache;
pub use error::{CompileError, EvaluationError};

use direct::Direct;
use environment::{Variables, environment};
use fuel::Fuel;
use functions::regex::PatternValue;
use types::{Plain, Ty};

/// Largest length of an expression, in bytes.
pub(crate) const EXPRESSION_LIMIT: usize = 10 * 1024;

/// Largest nesting depth of brackets. The parser of the `cel` crate needs about 170 KiB of stack for each level in a
/// build without optimization, so that the limit fits in the 2 MiB of a thread with room to spare.
const NESTING_LIMIT: u16 = 9;

/// Largest depth of an expression when it is evaluated. Each level takes about 40 KiB of stack in a build without
/// optimization.
const DEPTH_LIMIT: usize = 40;

/// Input of a selector: a device and its driver.
///
/// ```
/// use dra_alloc::selector::{Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let device = Device { name: "gpu-0".to_owned(), ..Default::default() };
/// let input = SelectorInput { driver: "gpu.example", device: &device };
/// assert_eq!(Selector::compile("device.driver == 'gpu.example'")?.matches(input), Ok(true));
/// # Ok::<(), dra_alloc::selector::CompileError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; these are all that an expression can read")]
pub struct SelectorInput<'a> {
    /// Driver of the device's slice.
    pub driver: &'a str,
    /// Device to evaluate.
    pub device: &'a Device,
}

/// Compiled CEL expression over a device.
///
/// ```
/// use dra_alloc::selector::{Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};
///
/// let near = Selector::compile("device.attributes['resource.kubernetes.io'].numaNode.includes(4)")?;
/// let numa = |attribute| Device {
///     attributes: Some([("resource.kubernetes.io/numaNode".to_owned(), attribute)].into()),
///     ..Default::default()
/// };
/// let list = numa(DeviceAttribute { ints: Some(vec![6, 4, 5, 7]), ..Default::default() });
/// let scalar = numa(DeviceAttribute { int: Some(6), ..Default::default() });
/// assert_eq!(near.matches(SelectorInput { driver: "gpu.example", device: &list }), Ok(true));
/// assert_eq!(near.matches(SelectorInput { driver: "gpu.example", device: &scalar }), Ok(false));
/// # Ok::<(), dra_alloc::selector::CompileError>(())
/// ```
#[derive(Debug)]
pub struct Selector {
    expression: String,
    program: IdedExpr,
    patterns: Vec<PatternValue>,
    only_driver: bool,
    /// Direct form, which is tried before the program.
    direct: Option<Direct>,
}

impl Selector {
    /// Compiles a selector: an expression that is true or false.
    ///
    /// # Errors
    /// The reason that the expression is rejected.
    ///
    /// ```
    /// # use dra_alloc::selector::Selector;
    /// assert!(Selector::compile("device.attributes['gpu.example'].healthy").is_ok());
    /// assert!(Selector::compile("device.driver").is_err());
    /// ```
    pub fn compile(expression: &str) -> Result<Self, CompileError> {
        let (selector, result) = Self::compile_any(expression)?;
        if result == Ty::BOOL || result.is_open() {
            return Ok(selector);
        }
        Err(CompileError::NotBool { actual: result.to_string() })
    }

    /// Compiles the expression of a derived attribute: its result is an attribute's value.
    ///
    /// # Errors
    /// The reason that the expression is rejected.
    ///
    /// ```
    /// # use dra_alloc::selector::Selector;
    /// assert!(Selector::compile_derived("device.driver").is_ok());
    /// assert!(Selector::compile_derived("1.5").is_err());
    /// ```
    pub fn compile_derived(expression: &str) -> Result<Self, CompileError> {
        let (selector, result) = Self::compile_any(expression)?;
        let scalar = |plain| {
            matches!(plain, Plain::Unknown | Plain::Dyn | Plain::Bool | Plain::Int | Plain::String | Plain::Semver)
        };
        match result {
            Ty::One(plain) | Ty::ListOf(plain) if scalar(plain) => Ok(selector),
            // Of a list that was in another one the elements are not inferred: an evaluation shows what they are.
            Ty::One(Plain::List) => Ok(selector),
            _ => Err(CompileError::NotAttribute { actual: result.to_string() }),
        }
    }

    fn compile_any(expression: &str) -> Result<(Self, Ty), CompileError> {
        if expression.trim().is_empty() {
            return Err(CompileError::Empty);
        }
        if expression.len() > EXPRESSION_LIMIT {
            return Err(CompileError::TooLong { length: expression.len() });
        }
        lexical::check_chains(expression)?;
        let mut program = parse(expression)?;
        check_depth(&program)?;
        names::resolve(&mut program)?;
        let findings = check::check(&program)?;
        let direct = direct::recognize(&program);
        lazy::rewrite(&mut program);
        check_depth(&program)?;
        let patterns = meter::rewrite(&mut program)?;
        check_depth(&program)?;
        let expression = expression.to_owned();
        Ok((Self { expression, program, patterns, only_driver: findings.only_driver, direct }, findings.result))
    }

    /// Returns the text of the expression.
    ///
    /// ```
    /// # use dra_alloc::selector::Selector;
    /// assert_eq!(Selector::compile("true")?.expression(), "true");
    /// # Ok::<(), dra_alloc::selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns true if the expression reads only `device.driver` of the device. One evaluation then serves all devices
    /// of a driver that have no invalid attribute.
    ///
    /// ```
    /// # use dra_alloc::selector::Selector;
    /// assert!(Selector::compile("device.driver == 'gpu.example'")?.depends_only_on_driver());
    /// assert!(!Selector::compile("device.allowMultipleAllocations")?.depends_only_on_driver());
    /// # Ok::<(), dra_alloc::selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn depends_only_on_driver(&self) -> bool {
        self.only_driver
    }

    /// Returns true if the expression holds for a device.
    ///
    /// # Errors
    /// The reason that the evaluation fails. It always fails for a device with an invalid attribute, even if the
    /// expression does not read it.
    ///
    /// ```
    /// # use dra_alloc::selector::{Selector, SelectorInput};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let input = SelectorInput { driver: "gpu.example", device: &Device::default() };
    /// assert_eq!(Selector::compile("has(device.attributes['gpu.example'].model)")?.matches(input), Ok(false));
    /// # Ok::<(), dra_alloc::selector::CompileError>(())
    /// ```
    pub fn matches(&self, input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
        device::check(input.device)?;
        self.matches_sound(input)
    }

    /// Evaluates like [`Selector::matches`], for a device whose attributes and capacities all have valid values
    /// ([`is_sound`]).
    pub(crate) fn matches_sound(&self, input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
        let answer = self.direct.as_ref().and_then(|direct| direct.evaluate(input));
        answer.map_or_else(|| self.interpret(input, truth), Ok)
    }

    /// Evaluates like [`Selector::matches`], without the direct form.
    ///
    /// For the project's own tests only, which compare both forms and are outside of this crate.
    #[doc(hidden)]
    pub fn matches_interpreted(&self, input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
        device::check(input.device)?;
        self.interpret(input, truth)
    }

    /// Returns true if the expression has a direct form. For the project's own tests only.
    #[doc(hidden)]
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Returns the value of the expression as an attribute.
    ///
    /// # Errors
    /// The reason that the evaluation fails. It always fails for a device with an invalid attribute, even if the
    /// expression does not read it.
    ///
    /// ```
    /// # use dra_alloc::selector::{Selector, SelectorInput};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let input = SelectorInput { driver: "gpu.example", device: &Device::default() };
    /// let vendor = Selector::compile_derived("device.driver.split('.')[0]")?.derive(input).unwrap();
    /// assert_eq!(vendor.string.as_deref(), Some("gpu"));
    /// # Ok::<(), dra_alloc::selector::CompileError>(())
    /// ```
    pub fn derive(&self, input: SelectorInput<'_>) -> Result<DeviceAttribute, EvaluationError> {
        device::check(input.device)?;
        self.interpret(input, attribute::from_value)
    }

    /// Evaluates the CEL program on a device whose attributes and capacities are valid.
    fn interpret<T>(
        &self,
        input: SelectorInput<'_>,
        read: impl FnOnce(&dyn Val) -> Result<T, EvaluationError>,
    ) -> Result<T, EvaluationError> {
        let fuel = Fuel::new();
        let variables = Variables::new(input, &fuel, &self.patterns);
        let mut scope = environment().root.new_inner_scope();
        scope.set_variable_resolver(&variables);
        let result = Value::resolve_val(&self.program, &scope);
        if fuel.is_exhausted() {
            return Err(EvaluationError::CostExceeded);
        }
        result.map_err(EvaluationError::from_execution).and_then(|value| read(value.as_ref()))
    }
}

/// Returns true if all attributes and capacities of a device have valid values.
pub(crate) fn is_sound(device: &Device) -> bool {
    device::check(device).is_ok()
}

fn truth(value: &dyn Val) -> Result<bool, EvaluationError> {
    attribute::bool(value).ok_or_else(|| EvaluationError::NotBool { actual: value.get_type().name().to_owned() })
}

fn parse(expression: &str) -> Result<IdedExpr, CompileError> {
    let parser = environment().env.parser().max_recursion_depth(NESTING_LIMIT).enable_ident_escape_syntax(true);
    parser.parse(expression).map_err(|errors| {
        let message = errors.to_string();
        if message.to_ascii_lowercase().contains("recursion limit") {
            return CompileError::TooComplex;
        }
        let message = if message.contains("Syntax error") { message } else { format!("Syntax error: {message}") };
        CompileError::Syntax { message: error::shortened(&message) }
    })
}

fn check_depth(expression: &IdedExpr) -> Result<(), CompileError> {
    if tree::depth(expression) > DEPTH_LIMIT { Err(CompileError::TooComplex) } else { Ok(()) }
}
