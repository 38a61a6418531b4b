//! CEL expressions with their location: selectors of a class or a request, and derived attributes.
//!
//! An expression is compiled on first use. Compiled selectors of a class serve every claim.

use std::sync::{Arc, OnceLock};

use dra_selector::internal::ListMemory;
use dra_selector::{CompileError, Selector, SelectorCache};
use k8s_openapi::api::resource::v1::DeviceSelector;

/// Compiled form of a CEL expression, or its compile error, set on first use.
pub(crate) type Compiled = OnceLock<Result<Arc<Selector>, CompileError>>;

/// Owner of a selector in error messages: a class or a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'p> {
    Class(&'p str),
    Claim,
}

/// Selectors of a class or of a request.
#[derive(Clone, Debug)]
pub(crate) struct Selectors<'p> {
    owner: Owner<'p>,
    list: &'p [DeviceSelector],
    compiled: Box<[Compiled]>,
}

/// One selector with its location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expression<'p> {
    /// CEL text; `None` for a selector without an expression.
    pub(crate) text: Option<&'p str>,
    pub(crate) owner: Owner<'p>,
    /// Position among the selectors of its owner.
    pub(crate) index: usize,
    /// Compiled forms of all selectors of the owner's list.
    compiled: &'p [Compiled],
}

impl<'p> Expression<'p> {
    /// Returns the compiled selector, compiling it on first use; `None` if the selector has no expression.
    pub(crate) fn compile(&self, selectors: &SelectorCache) -> Option<Result<&'p Selector, &'p CompileError>> {
        let (text, compiled) = (self.text?, self.compiled.get(self.index)?);
        Some(compiled.get_or_init(|| self.limited(selectors.compile(text)?)).as_deref())
    }

    fn limited(&self, selector: Arc<Selector>) -> Result<Arc<Selector>, CompileError> {
        let before = self.compiled.iter().take(self.index).filter_map(|compiled| compiled.get()?.as_ref().ok());
        let mut memory = ListMemory::of(before.map(|selector| &**selector));
        memory.add(&selector).map(|()| selector)
    }
}

impl<'p> Selectors<'p> {
    pub(crate) fn new(owner: Owner<'p>, list: &'p [DeviceSelector]) -> Self {
        Self { owner, list, compiled: list.iter().map(|_| Compiled::new()).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Expression<'_>> {
        expressions(self.owner, self.list, &self.compiled)
    }
}

/// Returns the selectors of a list, each with its compiled form.
pub(crate) fn expressions<'p>(
    owner: Owner<'p>,
    list: &'p [DeviceSelector],
    compiled: &'p [Compiled],
) -> impl Iterator<Item = Expression<'p>> {
    list.iter().enumerate().map(move |(index, selector)| Expression {
        text: selector.cel.as_ref().map(|cel| cel.expression.as_str()),
        owner,
        index,
        compiled,
    })
}
