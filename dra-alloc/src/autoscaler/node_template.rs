//! Template of a node: what one more node of a kind would bring.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_device::internal::name_of;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceAttribute, ResourceSlice};

use crate::cluster::inventory::is_for_one_node;

/// Node that does not exist yet, with its slices: one more node of a node group.
///
/// The slices come from a node of the group ([`super::NodeCopy::slices`]) or from a description of the machine. Attributes
/// that get their values on the node itself are named, so that no answer depends on a value that nobody knows.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTemplate {
    node: Node,
    slices: Vec<Arc<ResourceSlice>>,
    unknown_attributes: BTreeSet<String>,
}

/// Reason why a node and slices make no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeTemplateError {
    /// The node has no name.
    #[error("node metadata.name: must not be empty")]
    NoNodeName,
    /// A slice has no name.
    #[error("ResourceSlice metadata.name: must not be empty")]
    NoSliceName,
    /// Two slices have one name.
    #[error("slice {slice:?} occurs twice")]
    SliceTwice {
        /// Name of the slice.
        slice: String,
    },
    /// A slice is of another node.
    #[error("slice {slice:?}: spec.nodeName is not {node:?}")]
    OtherNode {
        /// Name of the slice.
        slice: String,
        /// Name of the template's node.
        node: String,
    },
    /// A slice is not of one node, so that one more node would not have it.
    #[error("can't sanitize slice {slice} because it isn't node-local")]
    NotNodeLocal {
        /// Name of the slice.
        slice: String,
    },
}

impl NodeTemplate {
    /// Joins a node and its slices. A slice may be for several nodes, if it comes with the node.
    ///
    /// # Errors
    /// A name is missing or occurs twice, or a slice names another node.
    pub fn new<S: Into<Arc<ResourceSlice>>>(
        node: Node,
        slices: impl IntoIterator<Item = S>,
    ) -> Result<Self, NodeTemplateError> {
        let name = node.metadata.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or(NodeTemplateError::NoNodeName)?;
        let slices: Vec<Arc<ResourceSlice>> = slices.into_iter().map(Into::into).collect();
        let mut names = BTreeSet::new();
        for slice in &slices {
            let text = || name_of(slice).to_owned();
            if name_of(slice).is_empty() {
                return Err(NodeTemplateError::NoSliceName);
            }
            if !names.insert(name_of(slice)) {
                return Err(NodeTemplateError::SliceTwice { slice: text() });
            }
            if is_for_one_node(slice) && slice.spec.node_name.as_deref() != Some(name) {
                return Err(NodeTemplateError::OtherNode { slice: text(), node: name.to_owned() });
            }
        }
        Ok(Self { node, slices, unknown_attributes: BTreeSet::new() })
    }

    /// Names attributes, as `domain/name`, whose values are known only when the node exists.
    ///
    /// A pod whose selectors may read one of them is refused with [`super::PlacementError::UnknownInClaim`]; so is one with a constraint on
    /// it, unless devices of the template have placeholders for it: equal values for devices that will share a value, such as
    /// the `pcieRoot` of a GPU and a network card, and different ones for others. See
    /// [`super::TemplateRules::with_placeholders`].
    #[must_use]
    pub fn with_unknown_attributes(mut self, attributes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.unknown_attributes.extend(attributes.into_iter().map(Into::into));
        self
    }

    /// Says which devices will have equal values of an unknown attribute, by their names: the `pcieRoot` of a GPU and a network
    /// card, say. Groups with a common device are one. It adds the attribute to those of
    /// [`NodeTemplate::with_unknown_attributes`], and gives the devices placeholders; others have none.
    ///
    /// ```
    /// use dra_alloc::autoscaler::NodeTemplate;
    /// use k8s_openapi::api::core::v1::Node;
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use serde_json::{from_value, json};
    /// let node: Node = from_value(json!({"metadata": {"name": "t"}}))?;
    /// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "nodeName": "t",
    ///     "pool": {"name": "t", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu"}, {"name": "nic"}]}}))?;
    /// let template = NodeTemplate::new(node, [slice])?
    ///     .with_equal_devices("resource.kubernetes.io/pcieRoot", [["gpu", "nic"]]);
    /// let devices = template.slices()[0].spec.devices.iter().flatten();
    /// let roots: Vec<_> = devices.map(|one| &one.attributes.as_ref().unwrap()["resource.kubernetes.io/pcieRoot"]).collect();
    /// assert_eq!(roots[0], roots[1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_equal_devices<'d>(
        mut self,
        attribute: &str,
        groups: impl IntoIterator<Item = impl IntoIterator<Item = &'d str>>,
    ) -> Self {
        let mut joined: Vec<BTreeSet<&str>> = Vec::new();
        for group in groups {
            let mut all: BTreeSet<&str> = group.into_iter().collect();
            let (touched, others): (Vec<_>, Vec<_>) = joined.into_iter().partition(|known| !known.is_disjoint(&all));
            all.extend(touched.into_iter().flatten());
            joined = others;
            joined.push(all);
        }
        for slice in &mut self.slices {
            for device in Arc::make_mut(slice).spec.devices.iter_mut().flatten() {
                let Some(group) = joined.iter().find(|group| group.contains(device.name.as_str())) else { continue };
                let placeholder = group.first().map(|first| format!("unknown-{first}"));
                let value = DeviceAttribute { string: placeholder, ..DeviceAttribute::default() };
                let attributes = device.attributes.get_or_insert_default();
                if let Some((_, short)) = attribute.split_once('/') {
                    attributes.remove(short);
                }
                attributes.insert(attribute.to_owned(), value);
            }
        }
        self.unknown_attributes.insert(attribute.to_owned());
        self
    }

    /// Returns the node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the slices that come with the node.
    #[must_use]
    pub fn slices(&self) -> &[Arc<ResourceSlice>] {
        &self.slices
    }

    /// Returns the attributes whose values are not known yet.
    #[must_use]
    pub(crate) const fn unknown_attributes(&self) -> &BTreeSet<String> {
        &self.unknown_attributes
    }

    pub(crate) fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }
}
