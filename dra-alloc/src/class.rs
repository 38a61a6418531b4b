//! Device classes of a cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassConfiguration};

use crate::expression::{Owner, Selectors};
use crate::selector::SelectorCache;

/// Device classes of a cluster, indexed by name.
///
/// If several classes have one name, the last one counts. Selectors are compiled on first use, and then serve every
/// allocator that borrows the index.
///
/// ```
/// use dra_alloc::Classes;
/// use k8s_openapi::api::resource::v1::DeviceClass;
/// let mut class = DeviceClass::default();
/// class.metadata.name = Some("gpu".to_owned());
/// assert_eq!(Classes::new([&class]).len(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Classes<'a> {
    by_name: BTreeMap<&'a str, Class<'a>>,
}

impl<'a> Classes<'a> {
    /// Builds an index of classes by name.
    ///
    /// # Complexity
    /// `O(n log n)` in the number of classes.
    pub fn new(classes: impl IntoIterator<Item = &'a DeviceClass>) -> Self {
        Self { by_name: classes.into_iter().map(Class::new).map(|class| (class.name, class)).collect() }
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if there is no class.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Class<'a>> {
        self.by_name.get(name)
    }

    /// Compiles the selectors of all classes.
    pub(crate) fn compile(&self, cache: &SelectorCache) {
        for selector in self.by_name.values().flat_map(|class| class.selectors.iter()) {
            selector.compile(cache);
        }
    }
}

impl fmt::Debug for Classes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// One device class with its selectors.
#[derive(Clone, Debug)]
pub(crate) struct Class<'a> {
    pub(crate) name: &'a str,
    pub(crate) selectors: Selectors<'a>,
    pub(crate) config: &'a [DeviceClassConfiguration],
}

impl<'a> Class<'a> {
    fn new(class: &'a DeviceClass) -> Self {
        let (name, spec) = (class.metadata.name.as_deref().unwrap_or_default(), class.spec.as_ref());
        let selectors = spec.and_then(|spec| spec.selectors.as_deref()).unwrap_or_default();
        let config = spec.and_then(|spec| spec.config.as_deref()).unwrap_or_default();
        Self { name, selectors: Selectors::new(Owner::Class(name), selectors), config }
    }
}
