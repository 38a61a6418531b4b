//! Names of a node that is copied.

/// Copy of a node: what one more node of its kind would be. See [`NodeCopy::slices`] and [`NodeCopy::claims`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCopy<'a> {
    pub(super) old_name: &'a str,
    pub(super) new_name: &'a str,
    suffix: &'a str,
    keeps_pool_names: bool,
}

impl<'a> NodeCopy<'a> {
    /// Names the node that is copied, its copy, and the suffix that the names of copied objects get after a hyphen.
    #[must_use]
    pub const fn new(old_name: &'a str, new_name: &'a str, suffix: &'a str) -> Self {
        Self { old_name, new_name, suffix, keeps_pool_names: false }
    }

    /// Keeps the names of pools, so that taint rules that name a pool still match. The pools of the node and of its copy
    /// then have one name: only one of the two may be in a simulation.
    #[must_use]
    pub const fn with_pool_names_kept(self) -> Self {
        Self { keeps_pool_names: true, ..self }
    }

    pub(super) fn suffixed(&self, name: &str) -> String {
        format!("{name}-{}", self.suffix)
    }

    /// Returns the name of a pool of the node in the copy.
    pub(super) fn pool(&self, name: &str) -> String {
        if self.keeps_pool_names { name.to_owned() } else { self.suffixed(name) }
    }
}
