//! Layers: changes of a state that are kept or dropped together.

use std::ops::{Deref, DerefMut};

use super::AllocatedState;

/// Layer over a state for a what-if question: its changes are kept by [`Layer::keep`] and dropped with the layer
/// otherwise. The state below is then exactly as before. A layer is itself a state, so that layers nest.
///
/// ```
/// use dra_alloc::{AllocatedState, DeviceId};
///
/// let gpu = |number: u32| DeviceId::new("gpu.example.com", "node-1", &format!("gpu-{number}"));
/// let mut state = AllocatedState::default();
/// let mut gang = state.layer();
/// gang.hold(&gpu(0));
/// let mut attempt = gang.layer();
/// attempt.hold(&gpu(1));
/// drop(attempt);
/// assert!(!gang.is_allocated(&gpu(1)));
/// gang.keep();
/// assert!(state.is_allocated(&gpu(0)));
/// ```
///
/// # Complexity
/// A layer costs as much as its changes, whatever the size of the state.
#[derive(Debug)]
pub struct Layer<'s> {
    below: &'s mut AllocatedState,
    state: AllocatedState,
}

impl AllocatedState {
    /// Begins a layer, for changes that are kept or dropped together.
    pub fn layer(&mut self) -> Layer<'_> {
        let state = self.clone();
        Layer { below: self, state }
    }
}

impl Layer<'_> {
    /// Makes the changes of the layer changes of the state below.
    pub fn keep(self) {
        *self.below = self.state;
    }
}

impl Deref for Layer<'_> {
    type Target = AllocatedState;

    fn deref(&self) -> &AllocatedState {
        &self.state
    }
}

impl DerefMut for Layer<'_> {
    fn deref_mut(&mut self) -> &mut AllocatedState {
        &mut self.state
    }
}
