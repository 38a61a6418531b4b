//! Sets of CPU or node ids in the kernel's list syntax: `0-3,8`.

use std::fmt;
use std::str::FromStr;

use crate::serde_text::serde_as_text;
use crate::sysfs::trimmed;

/// Exclusive upper bound of CPU and node ids; no kernel is built for more CPUs.
const MAX_CPUS: u32 = 65_536;

/// Reason that a text is not a list of CPU or node ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("id list {text:?}: {reason}")]
#[non_exhaustive]
pub struct CpuSetError {
    /// The invalid text.
    pub text: String,
    /// Rule that the text breaks.
    pub reason: &'static str,
}

/// Set of CPU or node ids, stored as ascending ranges that do not touch.
///
/// ```
/// use dra_attrs::numa::CpuSet;
/// let cpus: CpuSet = "8,0-3,2-4\n".parse()?;
/// assert_eq!(cpus.to_string(), "0-4,8");
/// assert!(cpus.contains(3) && !cpus.contains(5));
/// assert!("".parse::<CpuSet>()?.is_empty());
/// assert!("3-1".parse::<CpuSet>().is_err());
/// # Ok::<(), dra_attrs::numa::CpuSetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct CpuSet(Vec<(u32, u32)>);

impl CpuSet {
    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&id))
    }

    /// Returns the ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Sorts and merges ranges so that they are ascending and disjoint.
    fn normalised(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        Self::normalised(ids.into_iter().map(|id| (id, id)).collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let list = trimmed(text);
        if list.is_empty() {
            return Ok(Self::default());
        }
        let ranges: Result<_, _> = list.split(',').map(range).collect();
        ranges.map(Self::normalised).map_err(|reason| CpuSetError { text: text.to_owned(), reason })
    }
}

fn range(part: &str) -> Result<(u32, u32), &'static str> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (id(first)?, id(last)?);
    if first > last { Err("a range runs backwards") } else { Ok((first, last)) }
}

fn id(text: &str) -> Result<u32, &'static str> {
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
        return Err("expected numbers and ranges, separated by commas");
    }
    text.parse().ok().filter(|id| *id < MAX_CPUS).ok_or("an id is too large")
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

serde_as_text!(CpuSet, str::parse);
