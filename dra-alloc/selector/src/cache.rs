//! Cache of compiled CEL expressions, for any number of allocations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use dra_attrs::Profile;
use dra_attrs::internal::release::CelAttributes;

use super::{CompileError, Options, Selector};

/// Memory of a default cache, in bytes: some ten thousand selectors as drivers write them.
const DEFAULT_MEMORY: usize = 64 << 20;

/// Cache of compiled expressions that the caller keeps across calls, limited in memory. When it is full, it drops the
/// entries that were used least recently, a quarter of its memory.
///
/// Errors of compilation are kept too, and nothing that alone would take more than a quarter of the memory. It can be
/// shared among threads.
///
/// ```
/// use std::sync::Arc;
/// use dra_selector::SelectorCache;
///
/// let cache = SelectorCache::with_memory(1 << 20);
/// let first = cache.compile("device.driver == 'gpu.example'")?;
/// assert!(Arc::ptr_eq(&first, &cache.compile("device.driver == 'gpu.example'")?));
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Debug)]
pub struct SelectorCache {
    /// Most memory of all entries, in bytes.
    limit: usize,
    /// Counter of uses. An entry's stamp is the counter at its last use.
    clock: AtomicU64,
    entries: RwLock<Entries>,
}

/// Compiled expressions by text, and by the types that they are checked for.
#[derive(Debug, Default)]
struct Entries {
    selectors: BTreeMap<String, Entry>,
    /// Selectors of releases whose attributes are no lists.
    of_values: BTreeMap<String, Entry>,
    derived: BTreeMap<String, Entry>,
    /// Memory of all entries, in bytes.
    memory: usize,
}

impl Entries {
    const fn of(&self, purpose: Purpose) -> &BTreeMap<String, Entry> {
        match purpose {
            Purpose::Selector => &self.selectors,
            Purpose::OfValues => &self.of_values,
            Purpose::Derived => &self.derived,
        }
    }

    const fn of_mut(&mut self, purpose: Purpose) -> &mut BTreeMap<String, Entry> {
        match purpose {
            Purpose::Selector => &mut self.selectors,
            Purpose::OfValues => &mut self.of_values,
            Purpose::Derived => &mut self.derived,
        }
    }

    fn add(&mut self, purpose: Purpose, text: &str, entry: Entry) {
        self.memory += entry.memory;
        if let Some(former) = self.of_mut(purpose).insert(text.to_owned(), entry) {
            self.memory -= former.memory;
        }
    }

    /// Drops the entries that were used least recently, until at most `memory` bytes are left.
    fn shrink(&mut self, memory: usize) {
        let all = [Purpose::Selector, Purpose::OfValues, Purpose::Derived].into_iter().flat_map(|purpose| {
            self.of(purpose).iter().map(move |(text, entry)| (entry.used.load(Ordering::Relaxed), purpose, text))
        });
        let mut all: Vec<(u64, Purpose, String)> = all.map(|(used, of, text)| (used, of, text.clone())).collect();
        all.sort_unstable_by_key(|(used, ..)| *used);
        for (_, purpose, text) in all {
            if self.memory <= memory {
                return;
            }
            if let Some(dropped) = self.of_mut(purpose).remove(&text) {
                self.memory -= dropped.memory;
            }
        }
    }
}

/// Purpose of an expression: selector, selector where no attribute is a list, or derived attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Selector,
    OfValues,
    Derived,
}

#[derive(Debug)]
struct Entry {
    compiled: Result<Arc<Selector>, CompileError>,
    /// Memory, in bytes.
    memory: usize,
    used: AtomicU64,
}

impl Default for SelectorCache {
    /// Creates a cache of 64 MiB.
    ///
    /// ```
    /// # use dra_selector::SelectorCache;
    /// assert!(SelectorCache::default().compile("true").is_ok());
    /// ```
    fn default() -> Self {
        Self::with_memory(DEFAULT_MEMORY)
    }
}

impl SelectorCache {
    /// Creates a cache whose entries have at most `limit` bytes, by their own estimate; 0 switches caching off. A
    /// selector as drivers write it takes a few KiB, one with large patterns up to 2 MiB.
    ///
    /// ```
    /// # use dra_selector::SelectorCache;
    /// assert!(SelectorCache::with_memory(0).compile("true").is_ok());
    /// ```
    #[must_use]
    pub fn with_memory(limit: usize) -> Self {
        Self { limit, clock: AtomicU64::new(0), entries: RwLock::default() }
    }

    /// Returns the compiled form of a stored selector, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Selector::compile`].
    ///
    /// ```
    /// # use dra_selector::SelectorCache;
    /// assert!(SelectorCache::default().compile("device.driver").is_err());
    /// ```
    pub fn compile(&self, expression: &str) -> Result<Arc<Selector>, CompileError> {
        self.compiled(Purpose::Selector, expression, || Selector::compile(expression, &Options::stored()))
    }

    /// Returns the compiled form of a selector that is stored in the release of a profile, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Selector::compile`].
    ///
    /// ```
    /// # use dra_selector::SelectorCache;
    /// use dra_attrs::Profile;
    /// let (cache, expression) = (SelectorCache::default(), "device.attributes['gpu.example'].numaNode.includes(1)");
    /// assert!(cache.compile(expression).is_ok());
    /// assert!(cache.compile_in(expression, Profile::V1_35).is_err());
    /// ```
    pub fn compile_in(&self, expression: &str, profile: Profile) -> Result<Arc<Selector>, CompileError> {
        let purpose = match profile.rules().cel.attributes {
            CelAttributes::Values => Purpose::OfValues,
            CelAttributes::ValuesAndLists => Purpose::Selector,
        };
        self.compiled(purpose, expression, || Selector::compile(expression, &Options::stored().with_profile(profile)))
    }

    /// Returns the compiled form of a derived attribute's expression, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Selector::compile_derived`].
    ///
    /// ```
    /// # use dra_selector::SelectorCache;
    /// assert!(SelectorCache::default().compile_derived("device.driver").is_ok());
    /// ```
    pub fn compile_derived(&self, expression: &str) -> Result<Arc<Selector>, CompileError> {
        self.compiled(Purpose::Derived, expression, || Selector::compile_derived(expression, &Options::stored()))
    }

    pub(super) fn compiled(
        &self,
        purpose: Purpose,
        text: &str,
        compile: impl FnOnce() -> Result<Selector, CompileError>,
    ) -> Result<Arc<Selector>, CompileError> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.of(purpose).get(text) {
            entry.used.store(now, Ordering::Relaxed);
            return entry.compiled.clone();
        }
        drop(entries);
        let compiled = compile().map(Arc::new);
        let memory = match &compiled {
            Ok(selector) => selector.memory(),
            Err(error) => size_of::<Entry>() + text.len() + error.memory(),
        };
        if memory <= self.limit / 4 {
            self.keep(purpose, text, Entry { compiled: compiled.clone(), memory, used: AtomicU64::new(now) });
        }
        compiled
    }

    fn keep(&self, purpose: Purpose, text: &str, entry: Entry) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.memory + entry.memory > self.limit {
            entries.shrink(self.limit / 4 * 3);
        }
        entries.add(purpose, text, entry);
    }

    /// Returns the number of entries and their memory in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        (entries.selectors.len() + entries.of_values.len() + entries.derived.len(), entries.memory)
    }
}
