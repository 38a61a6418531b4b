//! Kubernetes' semver library. Versions are compared by precedence: build metadata does not count.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt};
use cel::common::value::{CowVal, Val};
use dra_attrs::Version;

use super::Parameter::{Bool, String as Text, Version as Semver};
use super::{Function, boolean, failed, fuel, global, member, mismatch, own, text};
use crate::selector::opaque::opaque;
use crate::selector::types::{Plain, Ty};

const RESULT: Ty = Ty::One(Plain::Semver);

/// Version as a CEL value.
#[derive(Clone, Debug)]
pub(in crate::selector) struct VersionValue(Version);

impl VersionValue {
    pub(in crate::selector) fn boxed<'v>(version: Version) -> Box<dyn Val + 'v> {
        Box::new(Self(version))
    }

    pub(in crate::selector) const fn version(&self) -> &Version {
        &self.0
    }
}

opaque!(VersionValue, "kubernetes.Semver", |one, other| one.0 == other.0);

pub(super) const FUNCTIONS: &[Function] = &[
    global("semver", &[Text], RESULT, |args| parse(&args).map(CowVal::owned)),
    global("semver", &[Text, Bool], RESULT, |args| parse(&args).map(CowVal::owned)),
    global("isSemver", &[Text], Ty::BOOL, |args| is_semver(&args).map(CowVal::owned)),
    global("isSemver", &[Text, Bool], Ty::BOOL, |args| is_semver(&args).map(CowVal::owned)),
    member("major", &[Semver], Ty::INT, |args| number(&args, Version::major).map(CowVal::owned)),
    member("minor", &[Semver], Ty::INT, |args| number(&args, Version::minor).map(CowVal::owned)),
    member("patch", &[Semver], Ty::INT, |args| number(&args, Version::patch).map(CowVal::owned)),
    member("compareTo", &[Semver, Semver], Ty::INT, |args| {
        compare(&args).map(|order| CowVal::owned(CelInt::from(order as i64)))
    }),
    member("isGreaterThan", &[Semver, Semver], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_gt())))
    }),
    member("isLessThan", &[Semver, Semver], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_lt())))
    }),
];

/// Parses the version in a text; with `true` after the text, also one that needs normalizing.
fn read(args: &[CowVal<'_, '_>]) -> Result<Result<Version, String>, ExecutionError> {
    let [source, normalize @ .., budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    let normalize = normalize.first().map_or(Ok(false), boolean)?;
    let normalized = if normalize { normalized(source) } else { Ok(source.to_owned()) };
    Ok(normalized.and_then(|version| version.parse().map_err(|error: dra_attrs::VersionError| error.to_string())))
}

/// Normalizes a version like Kubernetes: removes a leading `v` and leading zeros, adds missing numbers.
fn normalized(version: &str) -> Result<String, String> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let mut parts: Vec<String> = version.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(format!("version {version:?}: short version cannot contain PreRelease/Build meta data"));
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let digits = part.trim_start_matches('0');
    if digits.starts_with(|c: char| c.is_ascii_digit()) { digits.to_owned() } else { format!("0{digits}") }
}

fn parse(args: &[CowVal<'_, '_>]) -> Result<VersionValue, ExecutionError> {
    read(args)?.map(VersionValue).map_err(failed)
}

fn is_semver(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    Ok(read(args)?.is_ok().into())
}

/// Charges one unit to the budget of the evaluation, and returns the version on which the function was called.
fn receiver<'a>(args: &'a [CowVal<'_, '_>]) -> Result<&'a Version, ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(1)?;
    own::<VersionValue>(target).map(VersionValue::version)
}

fn number(args: &[CowVal<'_, '_>], part: impl Fn(&Version) -> u64) -> Result<CelInt, ExecutionError> {
    let number = i64::try_from(part(receiver(args)?));
    number.map(CelInt::from).map_err(|_| failed("version number out of range"))
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    let [_, other, _] = args else { return Err(mismatch()) };
    Ok(receiver(args)?.cmp(own::<VersionValue>(other)?.version()))
}
