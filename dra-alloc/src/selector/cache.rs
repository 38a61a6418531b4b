//! Cache of compiled CEL expressions, for any number of allocations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::{CompileError, Options, Selector};

/// Number of entries of a default cache.
const DEFAULT_CAPACITY: usize = 1000;

/// Cache of compiled expressions that the caller keeps across calls. At its capacity it drops the least recently used
/// entry.
///
/// Only successful compilations are kept. It can be shared among threads.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::SelectorCache;
///
/// let cache = SelectorCache::with_capacity(100);
/// let first = cache.compile("device.driver == 'gpu.example'")?;
/// assert!(Arc::ptr_eq(&first, &cache.compile("device.driver == 'gpu.example'")?));
/// # Ok::<(), dra_alloc::selector::CompileError>(())
/// ```
#[derive(Debug)]
pub struct SelectorCache {
    capacity: usize,
    /// Counter of uses. An entry's stamp is the counter at its last use.
    clock: AtomicU64,
    entries: RwLock<Entries>,
}

/// Compiled expressions by text. Selectors and derived attributes are checked for different types.
#[derive(Debug, Default)]
struct Entries {
    selectors: BTreeMap<String, Entry>,
    derived: BTreeMap<String, Entry>,
}

impl Entries {
    const fn of(&self, purpose: Purpose) -> &BTreeMap<String, Entry> {
        match purpose {
            Purpose::Selector => &self.selectors,
            Purpose::Derived => &self.derived,
        }
    }

    const fn of_mut(&mut self, purpose: Purpose) -> &mut BTreeMap<String, Entry> {
        match purpose {
            Purpose::Selector => &mut self.selectors,
            Purpose::Derived => &mut self.derived,
        }
    }

    fn len(&self) -> usize {
        self.selectors.len() + self.derived.len()
    }

    /// Drops the entry that was used least recently.
    fn drop_oldest(&mut self) {
        let oldest = [Purpose::Selector, Purpose::Derived].into_iter().flat_map(|purpose| {
            self.of(purpose).iter().map(move |(text, entry)| (entry.used.load(Ordering::Relaxed), purpose, text))
        });
        let oldest = oldest.min_by_key(|(used, ..)| *used).map(|(_, purpose, text)| (purpose, text.clone()));
        if let Some((purpose, text)) = oldest {
            self.of_mut(purpose).remove(&text);
        }
    }
}

/// Purpose of an expression: selector or derived attribute.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Selector,
    Derived,
}

#[derive(Debug)]
struct Entry {
    selector: Arc<Selector>,
    used: AtomicU64,
}

impl Default for SelectorCache {
    /// Creates a cache of 1000 entries.
    ///
    /// ```
    /// # use dra_alloc::SelectorCache;
    /// assert!(SelectorCache::default().compile("true").is_ok());
    /// ```
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

impl SelectorCache {
    /// Creates a cache of at most `capacity` entries; 0 switches caching off.
    ///
    /// ```
    /// # use dra_alloc::SelectorCache;
    /// assert!(SelectorCache::with_capacity(0).compile("true").is_ok());
    /// ```
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, clock: AtomicU64::new(0), entries: RwLock::default() }
    }

    /// Returns the compiled form of a stored selector, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Selector::compile`].
    ///
    /// ```
    /// # use dra_alloc::SelectorCache;
    /// assert!(SelectorCache::default().compile("device.driver").is_err());
    /// ```
    pub fn compile(&self, expression: &str) -> Result<Arc<Selector>, CompileError> {
        self.compiled(Purpose::Selector, expression, || Selector::compile(expression, &Options::stored()))
    }

    /// Returns the compiled form of a derived attribute's expression, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Selector::compile_derived`].
    ///
    /// ```
    /// # use dra_alloc::SelectorCache;
    /// assert!(SelectorCache::default().compile_derived("device.driver").is_ok());
    /// ```
    pub fn compile_derived(&self, expression: &str) -> Result<Arc<Selector>, CompileError> {
        self.compiled(Purpose::Derived, expression, || Selector::compile_derived(expression, &Options::stored()))
    }

    fn compiled(
        &self,
        purpose: Purpose,
        text: &str,
        compile: impl FnOnce() -> Result<Selector, CompileError>,
    ) -> Result<Arc<Selector>, CompileError> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.of(purpose).get(text) {
            entry.used.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(&entry.selector));
        }
        drop(entries);
        let selector = Arc::new(compile()?);
        if self.capacity > 0 {
            self.keep(purpose, text, &selector, now);
        }
        Ok(selector)
    }

    fn keep(&self, purpose: Purpose, text: &str, selector: &Arc<Selector>, now: u64) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity && !entries.of(purpose).contains_key(text) {
            entries.drop_oldest();
        }
        let entry = Entry { selector: Arc::clone(selector), used: AtomicU64::new(now) };
        entries.of_mut(purpose).insert(text.to_owned(), entry);
    }
}
