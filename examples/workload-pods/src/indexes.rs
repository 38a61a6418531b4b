//! Sets of indexes of a job, in the form of its status: `1,3-5`.

use std::collections::BTreeMap;

/// Set of indexes, as their first and last ones.
#[derive(Debug)]
pub(crate) struct Indexes(BTreeMap<usize, usize>);

impl Indexes {
    /// Reads a list such as `1,3-5`. Parts that are none are passed over.
    pub(crate) fn parse(text: &str) -> Self {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        };
        Self(text.split(',').filter_map(range).collect())
    }

    /// Returns the set of some indexes, which are sorted and differ.
    pub(crate) fn of(indexes: impl IntoIterator<Item = usize>) -> Self {
        let mut ranges: BTreeMap<usize, usize> = BTreeMap::new();
        for index in indexes {
            match ranges.last_entry() {
                Some(mut last) if last.get().checked_add(1) == Some(index) => drop(last.insert(index)),
                _ => drop(ranges.insert(index, index)),
            }
        }
        Self(ranges)
    }

    /// Returns the list, with two indexes in a row as `3,4` and more as `3-5`, as Kubernetes writes it.
    pub(crate) fn shown(&self) -> String {
        let range = |(first, last): (&usize, &usize)| match last.saturating_sub(*first) {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        };
        self.0.iter().map(range).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn count(&self) -> usize {
        let parts = self.0.iter().map(|(first, last)| last.saturating_sub(*first).saturating_add(1));
        parts.fold(0, usize::saturating_add)
    }

    /// Returns the last index of the part that has an index.
    pub(crate) fn last_with(&self, index: usize) -> Option<usize> {
        let (_, last) = self.0.range(..=index).next_back()?;
        (*last >= index).then_some(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_it_is_read() {
        for text in ["", "0", "0,1", "0-2,5", "1,3-5,7,8"] {
            let all = (0..10).filter(|index| Indexes::parse(text).last_with(*index).is_some());
            assert_eq!(Indexes::of(all).shown(), text);
        }
        assert_eq!([Indexes::parse("1,3-5,7,8").count(), Indexes::parse("x,1-,4").count()], [6, 1]);
    }
}
