//! Writes of one field that are on their way, and when the watch has shown them.

use std::collections::VecDeque;

/// Writes of a pod's status in their order, as far as one field goes. Every write has an answer, also one that leaves the
/// field as it is; the answers come in the order of the writes.
#[derive(Clone, Debug)]
pub(crate) struct Writes<T> {
    unseen: VecDeque<Write<T>>,
    /// How many writes, all older than those, have nothing more to show and are not answered.
    unanswered: u32,
    /// The newest version that the watch has shown.
    observed: Option<u64>,
}

#[derive(Clone, Debug)]
struct Write<T> {
    /// `None` if it leaves the field.
    value: Option<T>,
    /// The version that the answer named.
    version: Option<u64>,
}

/// What an update of the watch says about the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// None was on its way.
    NothingWritten,
    /// It is older than the last one.
    Older,
    /// It shows the last one, or something later.
    Shown,
}

impl<T> Default for Writes<T> {
    fn default() -> Self {
        Self { unseen: VecDeque::new(), unanswered: 0, observed: None }
    }
}

impl<T: PartialEq> Writes<T> {
    /// A write has been sent.
    pub(crate) fn issued(&mut self, value: Option<T>) {
        // Without a value nothing is awaited but the answer.
        if value.is_none() && self.unseen.is_empty() {
            self.unanswered = self.unanswered.saturating_add(1);
            return;
        }
        self.unseen.push_back(Write { value, version: None });
    }

    /// The oldest write that was not answered made this version, or has failed.
    pub(crate) fn answered(&mut self, version: Option<u64>) {
        if let Some(rest) = self.unanswered.checked_sub(1) {
            self.unanswered = rest;
            return;
        }
        let Some(oldest) = self.unseen.iter().position(|write| write.version.is_none()) else { return };
        if version.is_none() {
            self.unseen.remove(oldest);
        } else if let Some(write) = self.unseen.get_mut(oldest) {
            write.version = version;
            self.drop_by_version();
        }
    }

    /// The watch shows the field before and after.
    pub(crate) fn observed(&mut self, old: &T, new: &T, version: Option<u64>) -> Sight {
        let is_awaited = self.last().is_some();
        self.observed = self.observed.max(version);
        self.drop_by_version();
        let is_older = version.is_some() && self.unseen.front().is_some_and(|write| write.version.is_some());
        if old != new && !is_older {
            self.drop_by_value(new);
        }
        match self.last() {
            Some(_) => Sight::Older,
            None if is_awaited => Sight::Shown,
            None => Sight::NothingWritten,
        }
    }

    /// The last value that was written and not seen yet.
    pub(crate) fn last(&self) -> Option<&T> {
        self.unseen.iter().rev().find_map(|write| write.value.as_ref())
    }

    /// All is answered and seen.
    pub(crate) fn is_over(&self) -> bool {
        self.unseen.is_empty() && self.unanswered == 0
    }

    fn drop_by_version(&mut self) {
        let is_shown = |write: &Write<T>| write.version.is_some_and(|version| self.observed >= Some(version));
        if let Some(last) = self.unseen.iter().rposition(is_shown) {
            self.drop_first(last.saturating_add(1));
        }
    }

    /// Before its answer is there, a write is known by its value: the first one that wrote it, as later ones look the same.
    /// Those that follow without another value make no difference.
    fn drop_by_value(&mut self, shown: &T) {
        let writes_it = |value: &T| value == shown;
        let Some(first) = self.unseen.iter().position(|write| write.value.as_ref().is_some_and(writes_it)) else {
            return;
        };
        let keeps_it = |write: &&Write<T>| write.value.as_ref().is_none_or(writes_it);
        let follow = self.unseen.iter().skip(first).take_while(keeps_it).count();
        self.drop_first(first.saturating_add(follow));
    }

    fn drop_first(&mut self, count: usize) {
        for write in self.unseen.drain(..count) {
            self.unanswered = self.unanswered.saturating_add(u32::from(write.version.is_none()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sight, Writes};

    #[test]
    fn writes_of_other_fields_are_counted_and_not_kept() {
        let mut writes = Writes::default();
        for _ in 0..3 {
            writes.issued(None);
        }
        assert!(writes.unseen.is_empty() && !writes.is_over());
        writes.issued(Some("a"));
        // The first three answers are theirs, whatever they say.
        for version in [Some(5), None, Some(6)] {
            writes.answered(version);
            assert_eq!(writes.observed(&"", &"", Some(9)), Sight::Older);
        }
        writes.answered(Some(10));
        assert_eq!(writes.observed(&"", &"b", Some(10)), Sight::Shown);
        assert!(writes.is_over());
    }
}
