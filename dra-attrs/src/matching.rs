//! State of `matchAttribute` and `distinctAttribute` constraints over the devices of a claim, with push and pop for a
//! backtracking search.
//!
//! With list types a value is a set: a scalar is a set of one, a list the set of its elements. `matchAttribute`
//! requires a non-empty intersection over *all* devices (overlap of every pair is not enough); `distinctAttribute`
//! requires pairwise disjoint sets. Values of different types are never equal. Both are monotone: once violated,
//! further devices never help.
//!
//! Source of the rules: KEP-6072 (matchAttribute), KEP-5491, and the constraint handling of kube-scheduler 1.37.

use std::collections::BTreeMap;
use std::fmt;
use std::slice;

use serde::{Deserialize, Serialize};

use crate::index::Index;
use crate::k8s::DeviceAttribute;
use crate::value::Scalar;

/// Treatment of list-typed attribute values, which the scheduler's feature gate `DRAListTypeAttributes` controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ListTypes {
    /// `DRAListTypeAttributes` is on: a list counts as the set of its elements, a scalar as a set of one.
    Enabled,
    /// `DRAListTypeAttributes` is off, as in Kubernetes 1.37: a list-valued attribute of the first device is accepted
    /// unchecked, and one of any later device violates the constraint.
    Disabled,
    /// `DRAListTypeAttributes` is off, as in the text of KEP-6072: a list is an unknown value type, and always violates
    /// the constraint.
    Refused,
}

/// Reason that a device can't be added to the devices of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum MatchError {
    /// The device does not have the attribute. A missing attribute is unknown, never a default value.
    #[error("the device does not have the attribute")]
    Missing,
    /// The attribute exists but has no value (no field set, or an empty list).
    #[error("the attribute has no value")]
    NoValue,
    /// The attribute is a list, and the feature gate `DRAListTypeAttributes` is off.
    #[error("the attribute is a list, and list-typed attributes are disabled")]
    ListTypesOff,
    /// No value is common to the added device and all devices added before it.
    #[error("no value in common with the devices before")]
    NothingInCommon,
    /// An earlier device has one of the device's values already.
    #[error("shares a value with device {with}")]
    Repeated {
        /// Position of the earlier device, counted from 0 in the order of the pushes.
        with: Index<ValueSet<'static>>,
    },
}

/// Values of one device's attribute, as a constraint compares them. Build them once per device and push them any number
/// of times.
///
/// ```
/// use dra_attrs::{ListTypes, Scalar, ValueSet};
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
///
/// let list = DeviceAttribute { ints: Some(vec![6, 4, 4]), ..Default::default() };
/// let set = ValueSet::from_attribute(Some(&list), ListTypes::Enabled);
/// assert_eq!(set.values(), [Scalar::Int(4), Scalar::Int(6)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet<'a>(Kind<'a>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind<'a> {
    /// The device has no usable value. `first_unseen` is true if Kubernetes 1.37 accepts it unchecked as the first
    /// device.
    Unusable {
        violation: MatchError,
        first_unseen: bool,
    },
    One(Scalar<'a>),
    Many(Vec<Scalar<'a>>),
}

impl<'a> ValueSet<'a> {
    /// Reads the values of an attribute; `None` stands for a device that does not have it.
    ///
    /// An object with several fields set is invalid but accepted here. Fields are read in kube-scheduler's order:
    /// `ints`, `bools`, `strings`, `versions`, then the scalars.
    #[must_use]
    pub fn from_attribute(attribute: Option<&'a DeviceAttribute>, lists: ListTypes) -> Self {
        let Some(attribute) = attribute else {
            return Self::unusable(MatchError::Missing, lists);
        };
        let list = match lists {
            ListTypes::Enabled => list_of(attribute),
            ListTypes::Disabled | ListTypes::Refused => None,
        };
        match (list, scalar_of(attribute)) {
            (Some(list), _) => Self::many(list),
            (None, Some(scalar)) => Self(Kind::One(scalar)),
            (None, None) if has_list(attribute) && lists != ListTypes::Enabled => {
                Self::unusable(MatchError::ListTypesOff, lists)
            }
            (None, None) => Self::unusable(MatchError::NoValue, lists),
        }
    }

    fn unusable(violation: MatchError, lists: ListTypes) -> Self {
        let first_unseen = violation != MatchError::Missing && lists == ListTypes::Disabled;
        Self(Kind::Unusable { violation, first_unseen })
    }

    fn many(mut values: Vec<Scalar<'a>>) -> Self {
        values.sort_unstable();
        values.dedup();
        match values.as_slice() {
            [one] => Self(Kind::One(*one)),
            _ => Self(Kind::Many(values)),
        }
    }

    /// Returns the values, sorted and without duplicates; empty if the device has no usable value.
    #[must_use]
    pub fn values(&self) -> &[Scalar<'a>] {
        match &self.0 {
            Kind::Unusable { .. } => &[],
            Kind::One(value) => slice::from_ref(value),
            Kind::Many(values) => values,
        }
    }

    /// Returns the reason that the device has no usable value; `None` if it has one.
    ///
    /// ```
    /// use dra_attrs::{ListTypes, ValueSet, MatchError};
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    /// let list = DeviceAttribute { ints: Some(vec![6, 4]), ..Default::default() };
    /// assert_eq!(ValueSet::from_attribute(Some(&list), ListTypes::Disabled).violation(), Some(MatchError::ListTypesOff));
    /// assert_eq!(ValueSet::from_attribute(Some(&list), ListTypes::Enabled).violation(), None);
    /// ```
    #[must_use]
    pub const fn violation(&self) -> Option<MatchError> {
        match self.0 {
            Kind::Unusable { violation, .. } => Some(violation),
            Kind::One(_) | Kind::Many(_) => None,
        }
    }

    /// Returns the values of a device at `position` in the order of pushes, or the reason that it can't be pushed
    /// there.
    fn values_at(&self, position: usize) -> Result<&[Scalar<'a>], MatchError> {
        match self.0 {
            Kind::Unusable { violation, first_unseen } if !first_unseen || position > 0 => Err(violation),
            _ => Ok(self.values()),
        }
    }
}

fn list_of(attribute: &DeviceAttribute) -> Option<Vec<Scalar<'_>>> {
    let DeviceAttribute { ints, bools, strings, versions, .. } = attribute;
    let ints = ints.iter().map(|list| list.iter().map(|value| Scalar::Int(*value)).collect());
    let bools = bools.iter().map(|list| list.iter().map(|value| Scalar::Bool(*value)).collect());
    let strings = strings.iter().map(|list| list.iter().map(|value| Scalar::String(value)).collect());
    let versions = versions.iter().map(|list| list.iter().map(|value| Scalar::Version(value)).collect());
    ints.chain(bools).chain(strings).chain(versions).find(|list: &Vec<_>| !list.is_empty())
}

fn has_list(attribute: &DeviceAttribute) -> bool {
    let DeviceAttribute { ints, bools, strings, versions, .. } = attribute;
    ints.is_some() || bools.is_some() || strings.is_some() || versions.is_some()
}

fn scalar_of(attribute: &DeviceAttribute) -> Option<Scalar<'_>> {
    let DeviceAttribute { int, bool, string, version, .. } = attribute;
    (int.map(Scalar::Int))
        .or_else(|| bool.map(Scalar::Bool))
        .or_else(|| string.as_deref().map(Scalar::String))
        .or_else(|| version.as_deref().map(Scalar::Version))
}

/// State of a `matchAttribute` constraint: the values common to all pushed devices.
///
/// The intersections after each push are stored in one buffer. A push allocates nothing once the buffer has grown, and
/// a pop truncates it.
///
/// ```
/// use dra_attrs::{ListTypes, MatchState, ValueSet, MatchError};
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
///
/// let attribute = |ints: &[i64]| DeviceAttribute { ints: Some(ints.to_vec()), ..Default::default() };
/// let (a, b, c) = (attribute(&[1, 2]), attribute(&[2, 3]), attribute(&[1, 3]));
/// let set = |attribute| ValueSet::from_attribute(Some(attribute), ListTypes::Enabled);
///
/// let mut state = MatchState::new();
/// state.push(&set(&a))?;
/// state.push(&set(&b))?;
/// // Every pair overlaps, but nothing is common to all three.
/// assert_eq!(state.push(&set(&c)), Err(MatchError::NothingInCommon));
/// state.pop();
/// state.push(&set(&c))?;
/// assert_eq!(state.common()[0].to_string(), "1");
/// # Ok::<(), MatchError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MatchState<'a> {
    levels: Vec<Level>,
    values: Vec<Scalar<'a>>,
    scratch: Vec<Scalar<'a>>,
}

/// Entry of the undo stack for one pushed device: the values that it shares with all devices pushed before it, which are
/// `values[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    start: usize,
    end: usize,
}

impl<'a> MatchState<'a> {
    /// Builds the state of a constraint without devices.
    #[must_use]
    pub const fn new() -> Self {
        Self { levels: Vec::new(), values: Vec::new(), scratch: Vec::new() }
    }

    /// Adds a device. After an error the state is unchanged.
    ///
    /// # Errors
    /// The reason that the device can't be added.
    ///
    /// # Complexity
    /// Linear in the sizes of the device's set and of the intersection before it.
    pub fn push(&mut self, device: &ValueSet<'a>) -> Result<(), MatchError> {
        let offered = device.values_at(self.levels.len())?;
        let level = match self.levels.last() {
            None => self.append_level(offered),
            Some(&before) => self.intersect(before, offered)?,
        };
        self.levels.push(level);
        Ok(())
    }

    /// Removes the last pushed device. Does nothing if there is none.
    pub fn pop(&mut self) {
        self.levels.pop();
        self.values.truncate(self.levels.last().map_or(0, |level| level.end));
    }

    /// Returns the number of pushed devices.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.levels.len()
    }

    /// Returns true if no device is pushed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the values common to all devices, sorted by type and value. Empty without devices, and if the first
    /// device's list was accepted unchecked, as in Kubernetes 1.37.
    #[must_use]
    pub fn common(&self) -> &[Scalar<'a>] {
        self.levels.last().and_then(|level| self.values.get(level.start..level.end)).unwrap_or_default()
    }

    fn append_level(&mut self, values: &[Scalar<'a>]) -> Level {
        let start = self.values.len();
        self.values.extend_from_slice(values);
        Level { start, end: self.values.len() }
    }

    fn intersect(&mut self, before: Level, offered: &[Scalar<'a>]) -> Result<Level, MatchError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        intersect_sorted(self.common(), offered, &mut scratch);
        let level = match scratch.len() {
            0 => Err(MatchError::NothingInCommon),
            len if len == before.end - before.start => Ok(before),
            _ => Ok(self.append_level(&scratch)),
        };
        self.scratch = scratch;
        level
    }
}

/// Appends to `out` the intersection of two sorted lists without duplicates.
fn intersect_sorted<'a>(left: &[Scalar<'a>], right: &[Scalar<'a>], out: &mut Vec<Scalar<'a>>) {
    let mut right = right.iter().peekable();
    for value in left {
        while right.next_if(|other| *other < value).is_some() {}
        if right.peek() == Some(&value) {
            out.push(*value);
        }
    }
}

/// State of a `distinctAttribute` constraint: the values of the pushed devices, each with its device.
///
/// ```
/// use dra_attrs::{DistinctState, Index, ListTypes, ValueSet, MatchError};
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
///
/// let a = DeviceAttribute { string: Some("eth0".into()), ..Default::default() };
/// let set = ValueSet::from_attribute(Some(&a), ListTypes::Enabled);
/// let mut state = DistinctState::new();
/// state.push(&set)?;
/// assert_eq!(state.push(&set), Err(MatchError::Repeated { with: Index::from(0) }));
/// assert_eq!(state.taken().next().unwrap().to_string(), "\"eth0\"");
/// # Ok::<(), MatchError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DistinctState<'a> {
    taken: BTreeMap<Scalar<'a>, usize>,
    /// Values in the order in which they were pushed. `levels` has their number after each push.
    log: Vec<Scalar<'a>>,
    levels: Vec<usize>,
}

impl<'a> DistinctState<'a> {
    /// Builds the state of a constraint without devices.
    #[must_use]
    pub const fn new() -> Self {
        Self { taken: BTreeMap::new(), log: Vec::new(), levels: Vec::new() }
    }

    /// Adds a device. After an error the state is unchanged.
    ///
    /// # Errors
    /// The reason that the device can't be added.
    ///
    /// # Complexity
    /// `O(k log n)` for `k` values of the device and `n` taken values.
    pub fn push(&mut self, device: &ValueSet<'a>) -> Result<(), MatchError> {
        let position = self.levels.len();
        let values = device.values_at(position)?;
        if let Some(&with) = values.iter().find_map(|value| self.taken.get(value)) {
            return Err(MatchError::Repeated { with: Index::from(with) });
        }
        self.taken.extend(values.iter().map(|value| (*value, position)));
        self.log.extend_from_slice(values);
        self.levels.push(self.log.len());
        Ok(())
    }

    /// Returns the attribute values that the pushed devices use already, sorted.
    pub fn taken(&self) -> impl Iterator<Item = &Scalar<'a>> {
        self.taken.keys()
    }

    /// Removes the last pushed device. Does nothing if there is none.
    pub fn pop(&mut self) {
        self.levels.pop();
        let keep = self.levels.last().copied().unwrap_or(0);
        for value in self.log.drain(keep..) {
            self.taken.remove(&value);
        }
    }

    /// Returns the number of pushed devices.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.levels.len()
    }

    /// Returns true if no device is pushed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}

impl fmt::Display for ValueSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Unusable { violation, .. } => violation.fmt(f),
            Kind::One(value) => value.fmt(f),
            Kind::Many(values) => {
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}
