//! Turns: bindings that share a claim write it one after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use dra_device::claims::ClaimKey;

/// Claims that a binding writes now. A turn ends with the binding that has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(BTreeMap<ClaimKey, Weak<()>>);

/// Identity of a binding that takes turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn(Arc<()>);

impl Turns {
    /// Gives a claim to a binding, or leaves it to it. Returns false if another one has it.
    pub(super) fn take(&mut self, claim: &ClaimKey, turn: &Turn) -> bool {
        if self.0.get(claim).is_some_and(|taken| taken.strong_count() > 0 && !turn.is(taken)) {
            return false;
        }
        self.0.insert(claim.clone(), Arc::downgrade(&turn.0));
        true
    }

    /// Takes a claim from a binding that has it.
    pub(super) fn end(&mut self, claim: &ClaimKey, turn: &Turn) {
        if self.0.get(claim).is_some_and(|taken| turn.is(taken)) {
            self.0.remove(claim);
        }
    }
}

impl Turn {
    fn is(&self, other: &Weak<()>) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.0), other.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_with_its_binding_or_by_it() {
        let (mut turns, claim) = (Turns::default(), ClaimKey::new("ns", "c"));
        let (first, second) = (Turn::default(), Turn::default());
        assert!(turns.take(&claim, &first) && turns.take(&claim, &first) && !turns.take(&claim, &second));
        turns.end(&claim, &second);
        assert!(!turns.take(&claim, &second), "it is not the second one's to end");
        turns.end(&claim, &first);
        assert!(turns.take(&claim, &second));
        drop(second);
        assert!(turns.take(&claim, &first));
    }
}
