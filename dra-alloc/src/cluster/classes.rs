//! The device classes of a cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassConfiguration, DeviceSelector};

use crate::selector::expression::{Compiled, Expression, Owner, expressions};

/// The device classes of a cluster, indexed by name.
///
/// Classes are held by [`Arc`], as a watch cache has them, and are not copied. Of several classes with one name the last
/// counts. A selector is compiled when a device first needs it, and then serves every allocator that borrows the index.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::Classes;
/// use k8s_openapi::api::resource::v1::DeviceClass;
///
/// let mut class = DeviceClass::default();
/// class.metadata.name = Some("gpu".to_owned());
/// let store = [Arc::new(class)];
/// let mut classes = Classes::new(store.iter().cloned());
/// assert_eq!(classes.len(), 1);
/// classes.remove("gpu");
/// assert!(classes.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Classes {
    by_name: BTreeMap<String, Class>,
}

impl Classes {
    /// Indexes classes by name.
    ///
    /// # Complexity
    /// `n log n` in the number of classes.
    pub fn new(classes: impl IntoIterator<Item = impl Into<Arc<DeviceClass>>>) -> Self {
        let mut index = Self::default();
        for class in classes {
            index.set(class);
        }
        index
    }

    /// Adds a class, or replaces the stored class of the same name.
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    pub fn set(&mut self, class: impl Into<Arc<DeviceClass>>) {
        let class = Class::new(class.into());
        self.by_name.insert(class.name().to_owned(), class);
    }

    /// Removes the class that is named `name`, if there is one.
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
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

    pub(crate) fn named(&self, name: &str) -> Option<&Class> {
        self.by_name.get(name)
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// One device class, with the compiled form of its selectors.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    object: Arc<DeviceClass>,
    compiled: Box<[Compiled]>,
}

impl Class {
    fn new(object: Arc<DeviceClass>) -> Self {
        let compiled = selectors(&object).iter().map(|_| Compiled::new()).collect();
        Self { object, compiled }
    }

    pub(crate) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn selectors(&self) -> impl Iterator<Item = Expression<'_>> {
        expressions(Owner::Class(self.name()), selectors(&self.object), &self.compiled)
    }

    pub(crate) fn config(&self) -> &[DeviceClassConfiguration] {
        self.object.spec.as_ref().and_then(|spec| spec.config.as_deref()).unwrap_or_default()
    }
}

fn selectors(class: &DeviceClass) -> &[DeviceSelector] {
    class.spec.as_ref().and_then(|spec| spec.selectors.as_deref()).unwrap_or_default()
}
