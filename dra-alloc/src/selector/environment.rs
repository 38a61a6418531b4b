//! Environment for parsing and evaluating expressions, built once.

use std::sync::{Arc, OnceLock};

use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, DeclarationError, Env};

use super::SelectorInput;
use super::device::DeviceValue;
use super::fuel::Fuel;
use super::functions::cidr::CidrValue;
use super::functions::ip::IpValue;
use super::functions::regex::PatternValue;
use super::functions::{self, conversions, equality, metering};
use super::{macros, two_variables};

/// Name of the CEL variable that holds the remaining budget, the last argument of metered functions.
pub(super) const FUEL_VARIABLE: &str = "@fuel";
/// Prefix of the variables that hold compiled patterns; a number follows.
pub(super) const PATTERN_VARIABLE: &str = "@pattern";
/// Variable `device`, as users write it.
pub(super) const DEVICE_VARIABLE: &str = "device";
/// Alias of `device` that loop variables can't hide.
pub(super) const ABSOLUTE_DEVICE_VARIABLE: &str = "@device";

pub(super) struct Environment {
    pub(super) env: Arc<Env>,
    /// Outer scope of every evaluation.
    pub(super) root: Context<'static, 'static>,
}

pub(super) fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut env = Env::stdlib();
        // Fails only when two declarations are the same, which does not depend on any input; a test shows it doesn't.
        let declared = declare(&mut env);
        debug_assert_eq!(declared, Ok(()), "functions and macros are declared once");
        let env = Arc::new(env);
        Environment { root: Context::with_env(Arc::clone(&env)), env }
    })
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    macros::declare(env)?;
    two_variables::declare(env)?;
    metering::declare(env)?;
    equality::declare(env)?;
    conversions::declare(env)?;
    env.add_type(IpValue::cel_type().to_owned())?;
    env.add_type(CidrValue::cel_type().to_owned())?;
    for (number, function) in functions::all().enumerate() {
        let mut types: Vec<_> = function.parameters.iter().map(|parameter| parameter.to_type()).collect();
        types.push(Fuel::cel_type().to_owned());
        let id = format!("{}_{number}", function.name);
        if function.member {
            let target = types.remove(0);
            env.add_member_overload(function.name, &id, target, types, function.operation)?;
        } else {
            env.add_overload(function.name, &id, types, function.operation)?;
        }
    }
    Ok(())
}

/// Variables of one evaluation.
pub(super) struct Variables<'a> {
    device: DeviceValue<'a>,
    fuel: &'a Fuel,
    patterns: &'a [PatternValue],
}

impl<'a> Variables<'a> {
    pub(super) const fn new(input: SelectorInput<'a>, fuel: &'a Fuel, patterns: &'a [PatternValue]) -> Self {
        Self { device: DeviceValue::new(input, fuel), fuel, patterns }
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let value: &'b (dyn Val + 'b) = match variable {
            DEVICE_VARIABLE | ABSOLUTE_DEVICE_VARIABLE => &self.device,
            FUEL_VARIABLE => self.fuel,
            _ => {
                let number: usize = variable.strip_prefix(PATTERN_VARIABLE)?.parse().ok()?;
                self.patterns.get(number)?
            }
        };
        Some(CowVal::Borrowed(value))
    }
}
