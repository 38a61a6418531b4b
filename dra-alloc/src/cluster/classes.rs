//! The device classes of a cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dra_device::ApplyOutcome;
use dra_device::internal::ResourceVersion;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassConfiguration, DeviceSelector};

use super::extended_resources::{ExtendedResources, named_by};
use crate::cluster::expression::{CompiledSelector, Expression, Owner, expressions};
use crate::cluster::extended_resources::implicit_class;

/// The device classes of a cluster, indexed by name.
///
/// Classes are held by [`Arc`], as a watch cache has them, and are not copied. Of several classes with one name the last
/// counts, unless it is known to be an older version. A selector is compiled when a device first needs it, and then serves every allocator that borrows the index.
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
/// classes.remove("gpu", None);
/// assert!(classes.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Classes {
    by_name: BTreeMap<String, Class>,
    extended_resources: ExtendedResources,
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

    /// Adds a class, or replaces the stored class of the same name. An older version of the stored class (the same
    /// UID with a lower version) changes nothing.
    ///
    /// ```
    /// use dra_alloc::ApplyOutcome;
    /// use dra_alloc::Classes;
    /// use k8s_openapi::api::resource::v1::DeviceClass;
    ///
    /// let version = |version: &str| {
    ///     let mut class = DeviceClass::default();
    ///     class.metadata.name = Some("gpu".to_owned());
    ///     class.metadata.resource_version = Some(version.to_owned());
    ///     class
    /// };
    /// let mut classes = Classes::new([version("10")]);
    /// assert_eq!(classes.set(version("9")), ApplyOutcome::Older);
    /// assert_eq!(classes.set(version("11")), ApplyOutcome::Applied);
    /// ```
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    pub fn set(&mut self, class: impl Into<Arc<DeviceClass>>) -> ApplyOutcome {
        let class = Class::new(class.into());
        let known = self.by_name.get(class.name());
        if known.is_some_and(|known| ResourceVersion::is_older(&class.object.metadata, &known.object.metadata)) {
            return ApplyOutcome::Older;
        }
        self.take(class.name());
        self.extended_resources.add(&class.object);
        self.by_name.insert(class.name().to_owned(), class);
        ApplyOutcome::Applied
    }

    /// Removes the class that is named `name`, if there is one. `uid` is the UID of the deleted class: a class that was
    /// created anew under the name stays. Without it, whatever has the name is removed.
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    pub fn remove(&mut self, name: &str, uid: Option<&str>) -> ApplyOutcome {
        match self.by_name.get(name) {
            None => ApplyOutcome::Unknown,
            Some(known) if !ResourceVersion::is_deleted_by(&known.object.metadata, uid) => ApplyOutcome::OtherObject,
            Some(_) => {
                self.take(name);
                ApplyOutcome::Applied
            }
        }
    }

    /// Returns the device class that serves an extended resource (KEP-5004): the class of the name after
    /// `deviceclass.resource.kubernetes.io/`, or of the classes with `spec.extendedResourceName` the newest, and of
    /// those of one age the one with the lower name.
    ///
    /// ```
    /// use dra_alloc::Classes;
    /// use k8s_openapi::api::resource::v1::DeviceClass;
    /// use serde_json::{from_value, json};
    /// let class = |name: &str, created: &str| from_value::<DeviceClass>(json!({
    ///     "metadata": {"name": name, "creationTimestamp": created}, "spec": {"extendedResourceName": "example.com/gpu"}}));
    /// let classes = Classes::new([class("new", "2026-02-01T00:00:00Z")?, class("old", "2026-01-01T00:00:00Z")?]);
    /// let name = |resource| classes.of_extended_resource(resource).and_then(|class| class.metadata.name.as_deref());
    /// assert_eq!(name("example.com/gpu"), Some("new"));
    /// assert_eq!(name("deviceclass.resource.kubernetes.io/old"), Some("old"));
    /// assert_eq!(name("example.com/nic"), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    #[must_use]
    pub fn of_extended_resource(&self, resource: &str) -> Option<&DeviceClass> {
        let class = implicit_class(resource).or_else(|| self.extended_resources.class_of(resource))?;
        self.by_name.get(class).map(|class| &*class.object)
    }

    /// Returns the extended resource that a class names in `spec.extendedResourceName`, also if another class serves it.
    ///
    /// # Complexity
    /// Logarithmic in the number of classes.
    #[must_use]
    pub fn extended_resource_of(&self, class: &str) -> Option<&str> {
        named_by(&self.by_name.get(class)?.object)
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

    fn take(&mut self, name: &str) {
        if let Some(class) = self.by_name.remove(name) {
            self.extended_resources.remove(&class.object);
        }
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
    compiled: Box<[CompiledSelector]>,
}

impl Class {
    fn new(object: Arc<DeviceClass>) -> Self {
        let compiled = selectors(&object).iter().map(|_| CompiledSelector::default()).collect();
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
