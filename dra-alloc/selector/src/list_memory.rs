//! Memory of the compiled selectors of one list.

use crate::error::CompileError;
use crate::selector::Selector;

/// Most memory of the compiled selectors of one list, in bytes: of a class, or of a request.
const LARGEST_LIST: usize = 8 << 20;

/// Selectors of one list that are compiled, in order. Validation and allocation refuse the same ones.
#[derive(Debug, Default)]
pub struct ListMemory(usize);

impl ListMemory {
    /// Creates the memory of selectors that are compiled already.
    pub fn of<'s>(selectors: impl Iterator<Item = &'s Selector>) -> Self {
        Self(selectors.map(Selector::memory).sum())
    }

    /// Adds a selector.
    ///
    /// # Errors
    /// With those before it in the list it takes too much memory.
    pub fn add(&mut self, selector: &Selector) -> Result<(), CompileError> {
        let memory = self.0 + selector.memory();
        if memory > LARGEST_LIST {
            return Err(CompileError::too_large());
        }
        self.0 = memory;
        Ok(())
    }
}
