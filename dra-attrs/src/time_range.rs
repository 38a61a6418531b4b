//! Times of Kubernetes objects that are beyond the range of k8s-openapi's types.

use std::cmp::Ordering;

use k8s_openapi::jiff::SignedDuration;
use k8s_openapi::jiff::civil::{DateTime, datetime};
use k8s_openapi::jiff::fmt::temporal::Pieces;
use serde_json::Value;

/// Fields of Kubernetes objects that hold a time: those of type `Time` or `MicroTime` in k8s-openapi, and
/// `observationTime` of KEP-5677. Sorted.
const TIMES: [&str; 33] = [
    "acquireTime",
    "allocationTimestamp",
    "beginRefreshAt",
    "completionTime",
    "creationTimestamp",
    "deletionTimestamp",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "eventTime",
    "expectedCompletionTime",
    "expirationTimestamp",
    "finishedAt",
    "firstTimestamp",
    "heartbeatTime",
    "lastHeartbeatTime",
    "lastObservedTime",
    "lastPhaseTransitionTime",
    "lastProbeTime",
    "lastScaleTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "notAfter",
    "notBefore",
    "observationTime",
    "pingTime",
    "renewTime",
    "startTime",
    "startedAt",
    "time",
    "timeAdded",
];

/// Field that maps names of pods to times (`PodDisruptionBudget`).
const TIMES_BY_POD: &str = "disruptedPods";

/// Fields with names that users choose, or with JSON of any shape. What is below them is not looked at. Sorted.
const USERS_OWN: [&str; 43] = [
    "allocatable",
    "allocatedResourceStatuses",
    "allocatedResources",
    "annotations",
    "attachmentMetadata",
    "attestations",
    "attributes",
    "binaryData",
    "capacity",
    "consumedCapacity",
    "counters",
    "data",
    "default",
    "defaultRequest",
    "definitions",
    "dependencies",
    "deprecatedTopology",
    "enum",
    "example",
    "extra",
    "fieldsV1",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "max",
    "maxLimitRequestRatio",
    "min",
    "nodeAllocatableResources",
    "nodeSelector",
    "options",
    "overhead",
    "parameters",
    "patternProperties",
    "podFixed",
    "properties",
    "requests",
    "selector",
    "stringData",
    "unverifiedUserAnnotations",
    "used",
    "userAnnotations",
    "volumeAttributes",
];

/// Place in an object, by what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// A text that is a time.
    Time,
    /// Times by names of pods.
    TimesByPod,
    /// Names and values of users.
    UsersOwn,
    /// Fields of Kubernetes' types, or lists of them.
    Fields,
}

/// End of the range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Beginning of year 0. Go writes earlier times with a sign, which its own reader refuses.
    First,
    /// Last second of jiff's `Timestamp`.
    Last,
}

/// Position of a time that is not inside the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    At(End),
    Beyond(End),
}

/// Replaces times that `k8s_openapi`'s `Time` and `MicroTime` can't hold by the nearest that they can, and returns the
/// number of replaced times.
///
/// An API server stores every time of year 9999, and "the end of 9999" is what people write for "never". The types end at
/// `9999-12-30T22:00:00Z` (jiff's `Timestamp`): an object with a later time, such as a taint's `timeAdded`, can't be
/// decoded, nor can a list or a watch that has it. Call this function on the JSON of an object, a list, or an event of a
/// watch before it is decoded. Times before year 0, which a client that writes protobuf can store, become
/// `0000-01-01T00:00:00Z`.
///
/// Only fields that are times in Kubernetes' types change, and only if they are beyond the range: all other texts stay as
/// they are, byte for byte. Labels, annotations, attributes, opaque parameters and other places whose keys users choose are
/// left alone, and so are texts that are no times: decoding refuses them.
///
/// A PUT of an object with a replaced time would store the replacement: see [`has_saturated_time`]. A patch that does not
/// name the field leaves the stored time alone.
///
/// # Complexity
/// Linear in the size of the object. Depth is not limited: there is no recursion.
///
/// ```
/// use dra_attrs::{has_saturated_time, saturate_times};
/// use k8s_openapi::api::resource::v1::DeviceTaintRule;
/// use serde_json::json;
///
/// let mut rule = json!({
///     "metadata": {"name": "broken", "annotations": {"time": "9999-12-31T23:59:59Z"}},
///     "spec": {"taint": {"key": "example.com/broken", "effect": "NoSchedule", "timeAdded": "9999-12-31T23:59:59Z"}},
/// });
/// assert!(serde_json::from_value::<DeviceTaintRule>(rule.clone()).is_err());
///
/// assert_eq!(saturate_times(&mut rule), 1);
/// assert_eq!(rule["spec"]["taint"]["timeAdded"], "9999-12-30T22:00:00Z");
/// assert_eq!(rule["metadata"]["annotations"]["time"], "9999-12-31T23:59:59Z");
/// assert!(serde_json::from_value::<DeviceTaintRule>(rule.clone()).is_ok());
/// assert!(has_saturated_time(&rule));
/// ```
pub fn saturate_times(object: &mut Value) -> usize {
    let (mut open, mut replaced) = (vec![(Below::Fields, object)], 0_usize);
    while let Some((below, value)) = open.pop() {
        match (below, value) {
            (Below::Time, Value::String(text)) => {
                if let Some(Position::Beyond(end)) = position(text) {
                    *text = end.text(has_fraction(text));
                    replaced = replaced.saturating_add(1);
                }
            }
            (Below::UsersOwn, _) => {}
            (_, Value::Array(items)) => open.extend(items.iter_mut().map(|item| (Below::Fields, item))),
            (_, Value::Object(fields)) => {
                open.extend(fields.iter_mut().map(|(name, value)| (below.field(name), value)));
            }
            _ => {}
        }
    }
    replaced
}

/// Returns true if an object has a time at an end of the range of [`saturate_times`], or beyond it.
///
/// The stored time may then be another: who writes the whole object back (PUT) would change it. Send a patch of the fields
/// that are meant, or refuse.
///
/// # Complexity
/// Linear in the size of the object.
///
/// ```
/// use dra_attrs::has_saturated_time;
/// use serde_json::json;
/// assert!(has_saturated_time(&json!({"spec": {"renewTime": "9999-12-30T22:00:00.000000Z"}})));
/// assert!(!has_saturated_time(&json!({"spec": {"renewTime": "2026-11-27T12:00:00.000000Z"}})));
/// ```
#[must_use]
pub fn has_saturated_time(object: &Value) -> bool {
    let mut open = vec![(Below::Fields, object)];
    while let Some((below, value)) = open.pop() {
        match (below, value) {
            (Below::Time, Value::String(text)) if position(text).is_some() => return true,
            (Below::UsersOwn, _) => {}
            (_, Value::Array(items)) => open.extend(items.iter().map(|item| (Below::Fields, item))),
            (_, Value::Object(fields)) => open.extend(fields.iter().map(|(name, value)| (below.field(name), value))),
            _ => {}
        }
    }
    false
}

impl Below {
    /// Returns the place below a field of an object at this place.
    fn field(self, name: &str) -> Self {
        match self {
            Self::TimesByPod => Self::Time,
            _ if name == TIMES_BY_POD => Self::TimesByPod,
            _ if TIMES.binary_search(&name).is_ok() => Self::Time,
            _ if USERS_OWN.binary_search(&name).is_ok() => Self::UsersOwn,
            _ => Self::Fields,
        }
    }
}

impl End {
    /// Returns the time at this end. Go's reader of a `MicroTime` wants six digits of a fraction.
    fn text(self, has_fraction: bool) -> String {
        let fraction = if has_fraction { ".000000" } else { "" };
        match self {
            Self::First => format!("0000-01-01T00:00:00{fraction}Z"),
            Self::Last => format!("9999-12-30T22:00:00{fraction}Z"),
        }
    }
}

fn has_fraction(text: &str) -> bool {
    text.contains(['.', ','])
}

/// Returns the position of a time; none for times inside the range, and for other texts.
fn position(text: &str) -> Option<Position> {
    let unsigned = text.strip_prefix('-');
    let (year, rest) = unsigned.unwrap_or(text).split_once('-')?;
    if year.len() < 4 || !year.bytes().all(|digit| digit.is_ascii_digit()) || !has_form_after_year(rest) {
        return None;
    }
    match (unsigned.is_some(), year) {
        (true, _) => is_time(rest).then_some(Position::Beyond(End::First)),
        // Go writes a year of more than four digits for times at the end of 9999 that are west of Greenwich.
        (false, year) if year.len() > 4 => is_time(rest).then_some(Position::Beyond(End::Last)),
        (false, "9999") => position_in_last_year(text),
        (false, "0000") => position_in_first_year(text),
        _ => None,
    }
}

/// Returns true if the text after a year and its hyphen has the form that Go reads. jiff reads others, too.
fn has_form_after_year(rest: &str) -> bool {
    const FORM: &str = "dd-ddTdd:dd:dd";
    let fits = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(c, kind)| if kind == b'd' { c.is_ascii_digit() } else { c == kind })
    };
    let Some((time, rest)) = rest.split_at_checked(FORM.len()) else { return false };
    let fraction = rest.strip_prefix(['.', ',']);
    let zone = fraction.map_or(rest, |fraction| fraction.trim_start_matches(|c: char| c.is_ascii_digit()));
    let is_zone = zone == "Z" || fits(zone, "+dd:dd") || fits(zone, "-dd:dd");
    // jiff takes a leap second for the second before.
    fits(time, FORM) && is_zone && !time.ends_with(":60")
}

/// Returns true if a text is a time without its year.
fn is_time(rest: &str) -> bool {
    let in_leap_year = format!("2000-{rest}");
    Pieces::parse(&in_leap_year).is_ok_and(|pieces| pieces.time().is_some() && pieces.offset().is_some())
}

fn position_in_last_year(text: &str) -> Option<Position> {
    // The last second has fractions that the types can hold.
    let (last, next) = (datetime(9999, 12, 30, 22, 0, 0, 0), datetime(9999, 12, 30, 22, 0, 1, 0));
    let time = utc(text)?;
    match (time >= last, time >= next) {
        (_, true) => Some(Position::Beyond(End::Last)),
        (true, false) => Some(Position::At(End::Last)),
        (false, false) => None,
    }
}

fn position_in_first_year(text: &str) -> Option<Position> {
    match utc(text)?.cmp(&datetime(0, 1, 1, 0, 0, 0, 0)) {
        Ordering::Less => Some(Position::Beyond(End::First)),
        Ordering::Equal => Some(Position::At(End::First)),
        Ordering::Greater => None,
    }
}

/// Returns date and time in UTC of an RFC 3339 text; the end of year 9999 for those after it.
fn utc(text: &str) -> Option<DateTime> {
    let pieces = Pieces::parse(text).ok()?;
    let (time, offset) = (pieces.time()?, pieces.to_numeric_offset()?);
    let offset = SignedDuration::from_secs(i64::from(offset.seconds()));
    Some(pieces.date().to_datetime(time).saturating_sub(offset))
}
