//! Ratcheting validation (KEP-4008): declarative rules do not apply to unchanged parts of a stored object.

use super::context::ValidationContext;

impl ValidationContext {
    /// Runs a check that Kubernetes has only as a declarative rule on the type of the field. Skipped for an unchanged
    /// part. A rule of the hand-written validation applies to every write, even if the type declares it too.
    pub(super) fn declarative(&mut self, check: impl FnOnce(&mut Self)) {
        if !self.unchanged {
            check(self);
        }
    }

    /// Runs the checks of a part of the object. `unchanged` is true if the part equals the stored one.
    pub(super) fn ratchet(&mut self, unchanged: bool, checks: impl FnOnce(&mut Self)) {
        let before = self.unchanged;
        self.unchanged |= unchanged;
        checks(self);
        self.unchanged = before;
    }
}
