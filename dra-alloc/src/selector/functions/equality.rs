//! `==` and `!=` as cel-go evaluates them. In the `cel` crate values are equal or not; here a comparison may also fail:
//! Kubernetes' own values (versions, quantities, addresses, networks) compare with their own kind only.

use cel::common::types::{CelList, CelMap, CelNull, CelOptional, DYN_TYPE, MAP_TYPE};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::cidr::CidrValue;
use super::ip::IpValue;
use super::mismatch;
use super::quantity::QuantityValue;
use super::semver::VersionValue;

/// Name of the function for `==`.
pub(in crate::selector) const EQUAL: &str = "@equal";
/// Name of the function for `!=`: values that can't be compared are different.
pub(in crate::selector) const DIFFERENT: &str = "@different";

pub(in crate::selector) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let any = || vec![DYN_TYPE, DYN_TYPE];
    env.add_overload(EQUAL, EQUAL, any(), |args| pair(&args).and_then(truth))?;
    env.add_overload(DIFFERENT, DIFFERENT, any(), |args| {
        let [left, right] = pair(&args)?;
        truth_of(equality(left, right) != Ok(true))
    })
}

fn pair<'a, 'v>(args: &'a [CowVal<'_, 'v>]) -> Result<[&'a (dyn Val + 'v); 2], ExecutionError> {
    let [left, right] = args else { return Err(mismatch()) };
    Ok([left.as_ref(), right.as_ref()])
}

fn truth<'b, 'v>([left, right]: [&(dyn Val + '_); 2]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    truth_of(equality(left, right)?)
}

#[expect(clippy::unnecessary_wraps, reason = "the result of a function")]
fn truth_of<'b, 'v>(value: bool) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(super::truth(value))
}

/// Returns true if two values are equal; an error if values of the type of `left` can't be compared with `right`.
pub(in crate::selector) fn equality(left: &dyn Val, right: &dyn Val) -> Result<bool, ExecutionError> {
    let is_null = |value: &dyn Val| value.downcast_ref::<CelNull>().is_some();
    if is_null(left) || is_null(right) {
        return Ok(is_null(left) && is_null(right));
    }
    let of_one_kind = [of_kind::<VersionValue>, of_kind::<IpValue>, of_kind::<CidrValue>];
    if let Some(answer) = of_one_kind.iter().find_map(|of_kind| of_kind(left, right)) {
        return answer;
    }
    if let Some(quantity) = left.downcast_ref::<QuantityValue>() {
        return quantity.equality(right);
    }
    if let (Some(left), Some(right)) = (left.downcast_ref::<CelOptional<'_>>(), right.downcast_ref::<CelOptional<'_>>())
    {
        return match (left.option(), right.option()) {
            (Some(left), Some(right)) => equality(left, right),
            (left, right) => Ok(left.is_none() && right.is_none()),
        };
    }
    if let (Some(left), Some(right)) = (left.downcast_ref::<CelList<'_>>(), right.downcast_ref::<CelList<'_>>()) {
        let (left, right) = (left.inner(), right.inner());
        let mut pairs = left.iter().zip(right);
        return Ok(left.len() == right.len() && pairs.all(|(left, right)| is_alike(left.as_ref(), right.as_ref())));
    }
    if let Some(map) = left.downcast_ref::<CelMap<'_>>() {
        return Ok(is_same_map(map, right));
    }
    Ok(left.equals(right))
}

/// Compares two values of type `T`. Returns an error if only `left` is of that type, and `None` if `left` is not.
fn of_kind<T: StaticVal>(left: &dyn Val, right: &dyn Val) -> Option<Result<bool, ExecutionError>> {
    let left = left.downcast_ref::<T>()?;
    Some(right.downcast_ref::<T>().map(|right| left.equals(right)).ok_or_else(mismatch))
}

/// Returns true if two elements of containers are equal or can't be compared.
pub(in crate::selector) fn is_alike(left: &dyn Val, right: &dyn Val) -> bool {
    equality(left, right) != Ok(false)
}

fn is_same_map(map: &CelMap<'_>, other: &dyn Val) -> bool {
    let size = other.as_sizer().filter(|_| *other.get_type() == MAP_TYPE).map(|other| *other.size().inner());
    if size != i64::try_from(map.inner().len()).ok() {
        return false;
    }
    let found = |key: &dyn Val| other.as_indexer().and_then(|other| other.get(key).ok());
    let mut entries = map.inner().iter();
    entries.all(|(key, value)| found(key.inner()).is_some_and(|other| is_alike(value.as_ref(), other.as_ref())))
}
