//! Ratcheting validation (KEP-4008): declarative rules do not apply to unchanged parts of a stored object.

use super::context::ValidationContext;

impl ValidationContext {
    /// Runs a check that Kubernetes has only as a declarative validation rule. Skipped for an unchanged part of an
    /// object.
    pub(super) fn declarative(&mut self, check: impl FnOnce(&mut Self)) {
        if !self.unchanged {
            check(self);
        }
    }

    /// Runs the checks of a part of the object. `unchanged` is true if the part equals that of the stored object.
    pub(super) fn ratchet(&mut self, unchanged: bool, checks: impl FnOnce(&mut Self)) {
        let before = self.unchanged;
        self.unchanged |= unchanged;
        checks(self);
        self.unchanged = before;
    }
}
