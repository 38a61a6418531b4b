//! CEL expressions with their location: selectors of a class or a request, and derived attributes.
//!
//! An expression is compiled on first use. Compiled selectors of a class serve every claim.

use std::sync::{Arc, OnceLock};

use dra_attrs::internal::release::{CelAttributes, ConvertedAttributes};
use dra_attrs::{Gate, GateSet, Profile};
use dra_selector::internal::ListMemory;
use dra_selector::{CompileError, Selector, SelectorCache};
use k8s_openapi::api::resource::v1::DeviceSelector;

use crate::cluster::inventory::pool::Pool;

/// Compiled form of a CEL expression, or its compile error, set on first use.
pub(crate) type Compiled = OnceLock<Result<Arc<Selector>, CompileError>>;

/// Compiled forms of a selector, by the attributes that releases know.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompiledSelector {
    of_values: Compiled,
    of_lists: Compiled,
}

impl CompiledSelector {
    const fn of(&self, profile: Profile) -> &Compiled {
        match profile.rules().cel.attributes {
            CelAttributes::Values => &self.of_values,
            CelAttributes::ValuesAndLists => &self.of_lists,
        }
    }
}

/// Compiler of the stored expressions of one release.
#[derive(Clone, Copy)]
pub(crate) struct Compiler<'a> {
    pub(crate) cache: &'a SelectorCache,
    profile: Profile,
    /// True if an evaluation fails for a device that has a list, even if the expression does not read it.
    pub(crate) fails_on_lists: bool,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(cache: &'a SelectorCache, profile: Profile, gates: GateSet) -> Self {
        let fails_on_lists = match profile.rules().allocator.converted {
            ConvertedAttributes::All => !gates.has(Gate::ListTypeAttributes),
            ConvertedAttributes::Read => false,
        };
        Self { cache, profile, fails_on_lists }
    }

    /// Returns the attributes that the release knows.
    pub(crate) const fn attributes(self) -> CelAttributes {
        self.profile.rules().cel.attributes
    }

    /// Returns true if selectors can be evaluated on all devices of a pool.
    pub(crate) fn can_read(self, pool: &Pool) -> bool {
        pool.is_sound() && !(self.fails_on_lists && pool.has_lists())
    }
}

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
    compiled: Box<[CompiledSelector]>,
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
    compiled: &'p [CompiledSelector],
}

impl<'p> Expression<'p> {
    /// Returns the compiled selector, compiling it on first use; `None` if the selector has no expression.
    pub(crate) fn compile(&self, by: Compiler<'_>) -> Option<Result<&'p Arc<Selector>, &'p CompileError>> {
        let Compiler { cache, profile, .. } = by;
        let (text, compiled) = (self.text?, self.compiled.get(self.index)?.of(profile));
        Some(compiled.get_or_init(|| self.limited(cache.compile_in(text, profile)?, profile)).as_ref())
    }

    fn limited(&self, selector: Arc<Selector>, profile: Profile) -> Result<Arc<Selector>, CompileError> {
        let before = self.compiled.iter().take(self.index);
        let before = before.filter_map(|compiled| compiled.of(profile).get()?.as_ref().ok());
        let mut memory = ListMemory::of(before.map(|selector| &**selector));
        memory.add(&selector).map(|()| selector)
    }
}

impl<'p> Selectors<'p> {
    pub(crate) fn new(owner: Owner<'p>, list: &'p [DeviceSelector]) -> Self {
        Self { owner, list, compiled: list.iter().map(|_| CompiledSelector::default()).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Expression<'_>> {
        expressions(self.owner, self.list, &self.compiled)
    }
}

/// Returns the selectors of a list, each with its compiled form.
pub(crate) fn expressions<'p>(
    owner: Owner<'p>,
    list: &'p [DeviceSelector],
    compiled: &'p [CompiledSelector],
) -> impl Iterator<Item = Expression<'p>> {
    list.iter().enumerate().map(move |(index, selector)| Expression {
        text: selector.cel.as_ref().map(|cel| cel.expression.as_str()),
        owner,
        index,
        compiled,
    })
}
