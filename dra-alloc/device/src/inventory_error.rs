//! Error of an index of slices to which an event is applied.

/// Reason why an event can't be applied. The inventory is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The slice or taint rule of the event has no name.
    #[error("{kind} metadata.name: must not be empty")]
    NoName {
        /// Kind of the object.
        kind: &'static str,
    },
}
