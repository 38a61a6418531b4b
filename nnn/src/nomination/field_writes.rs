//! Pending writes of one status field, remembered until the watch has shown them.

use std::collections::VecDeque;

/// Pending writes of a pod's status, in sending order, each with the new value of one field.
///
/// Every write is answered, including one that leaves the field unchanged. Answers come in the order of the writes.
#[derive(Clone, Debug)]
pub(crate) struct FieldWrites<T> {
    unseen: VecDeque<FieldWrite<T>>,
    /// Number of writes without a response that are not in `unseen`: the watch has shown their value, or they leave the
    /// field unchanged. All are older than the writes in `unseen`.
    unanswered: u32,
    /// Latest resource version that the watch has shown.
    observed: Option<u64>,
}

#[derive(Clone, Debug)]
struct FieldWrite<T> {
    /// New value of the field; `None` if the write leaves it unchanged.
    value: Option<T>,
    /// Resource version in the response to the write; `None` before the response.
    version: Option<u64>,
}

/// Position of a watch event relative to the pending writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteObservation {
    /// No write was pending.
    NothingWritten,
    /// The event is older than the last pending write.
    Older,
    /// The event shows the last pending write, or a later state.
    Shown,
}

impl<T> Default for FieldWrites<T> {
    fn default() -> Self {
        Self { unseen: VecDeque::new(), unanswered: 0, observed: None }
    }
}

impl<T: PartialEq> FieldWrites<T> {
    /// Records that a PATCH was sent. `value` is the new value of the field, or `None` if the PATCH leaves it
    /// unchanged.
    pub(crate) fn issued(&mut self, value: Option<T>) {
        // Without a value nothing is awaited but the answer.
        if value.is_none() && self.unseen.is_empty() {
            self.unanswered = self.unanswered.saturating_add(1);
            return;
        }
        self.unseen.push_back(FieldWrite { value, version: None });
    }

    /// Records the response to the oldest write without one: its resource version, or `None` if it failed.
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

    /// Records a watch event with the old and the new value of the field.
    pub(crate) fn observed(&mut self, old: &T, new: &T, version: Option<u64>) -> WriteObservation {
        let is_awaited = self.last().is_some();
        self.observed = self.observed.max(version);
        self.drop_by_version();
        let is_older = version.is_some() && self.unseen.front().is_some_and(|write| write.version.is_some());
        if old != new && !is_older {
            self.drop_by_value(new);
        }
        match self.last() {
            Some(_) => WriteObservation::Older,
            None if is_awaited => WriteObservation::Shown,
            None => WriteObservation::NothingWritten,
        }
    }

    /// Returns the last written value that the watch has not shown yet.
    pub(crate) fn last(&self) -> Option<&T> {
        self.unseen.iter().rev().find_map(|write| write.value.as_ref())
    }

    /// Returns true if no write is pending: every write has a response and was shown by the watch.
    pub(crate) fn is_over(&self) -> bool {
        self.unseen.is_empty() && self.unanswered == 0
    }

    fn drop_by_version(&mut self) {
        let is_shown = |write: &FieldWrite<T>| write.version.is_some_and(|version| self.observed >= Some(version));
        if let Some(last) = self.unseen.iter().rposition(is_shown) {
            self.drop_first(last.saturating_add(1));
        }
    }

    /// Drops pending writes without a known resource version whose value a watch event shows.
    ///
    /// Of several writes of the same value the first one counts, because later ones look the same. Writes that follow
    /// without another value are dropped with it.
    fn drop_by_value(&mut self, shown: &T) {
        let writes_it = |value: &T| value == shown;
        let Some(first) = self.unseen.iter().position(|write| write.value.as_ref().is_some_and(writes_it)) else {
            return;
        };
        let keeps_it = |write: &&FieldWrite<T>| write.value.as_ref().is_none_or(writes_it);
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
    use super::{FieldWrites, WriteObservation};

    #[test]
    fn writes_of_other_fields_are_counted_and_not_kept() {
        let mut writes = FieldWrites::default();
        for _ in 0..3 {
            writes.issued(None);
        }
        assert!(writes.unseen.is_empty() && !writes.is_over());
        writes.issued(Some("a"));
        // The first three answers are theirs, whatever they say.
        for version in [Some(5), None, Some(6)] {
            writes.answered(version);
            assert_eq!(writes.observed(&"", &"", Some(9)), WriteObservation::Older);
        }
        writes.answered(Some(10));
        assert_eq!(writes.observed(&"", &"b", Some(10)), WriteObservation::Shown);
        assert!(writes.is_over());
    }
}
