//! Shapes of a node that does not exist yet: instance types, each with the label values that it may get.

use std::collections::BTreeSet;

use dra_attrs::Index;

use super::label_values::LabelValues;
use crate::autoscaler::{NodeTemplate, ScaleUpError};

/// Instance type that a node may become: a template, and the labels of which it may have one of several values.
///
/// ```
/// use dra_alloc::autoscaler::NodeTemplate;
/// use dra_alloc::superposition::NodeShape;
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::{from_value, json};
/// let node: Node = from_value(json!({"metadata": {"name": "large"}}))?;
/// let template = NodeTemplate::new(node, Vec::<ResourceSlice>::new())?;
/// let shape = NodeShape::new(&template, 7).with_label("topology.kubernetes.io/zone", ["a", "b"]);
/// # let _ = shape;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeShape<'s> {
    template: &'s NodeTemplate,
    price: u64,
    labels: LabelValues,
}

/// Reason why a shape can't be asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// The template of the shape is not new to the cluster.
    #[error("shape {}: {source}", usize::from(*shape))]
    NotNew {
        /// Position of the shape.
        shape: Index<NodeTemplate>,
        /// The reason.
        source: ScaleUpError,
    },
    /// The shape is offered with no value of a label.
    #[error("shape {}: label {label} must have a value", usize::from(*shape))]
    NoValues {
        /// Position of the shape.
        shape: Index<NodeTemplate>,
        /// Key of the label.
        label: String,
    },
    /// The labels that devices and pods read have too many combinations of values.
    #[error("shape {}: its labels make {combinations} kinds of nodes, and at most {most} are compared", usize::from(*shape))]
    TooMany {
        /// Position of the shape.
        shape: Index<NodeTemplate>,
        /// Number of combinations.
        combinations: usize,
        /// Largest number of combinations.
        most: usize,
    },
}

impl<'s> NodeShape<'s> {
    /// Describes nodes like a template. The price is that of one node, in the caller's unit.
    #[must_use]
    pub const fn new(template: &'s NodeTemplate, price: u64) -> Self {
        Self { template, price, labels: LabelValues::new() }
    }

    /// Sets the values of which the node gets one, in place of the template's: the zones in which it is offered, say.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<String>, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.labels.insert(key.into(), values.into_iter().map(Into::into).collect());
        self
    }

    pub(super) const fn template(&self) -> &'s NodeTemplate {
        self.template
    }

    pub(super) const fn price(&self) -> u64 {
        self.price
    }

    /// Returns the values of which the node gets one.
    pub(super) const fn labels(&self) -> &LabelValues {
        &self.labels
    }

    /// Returns the values of all labels, also of those that the template alone decides.
    pub(super) fn offered(&self) -> LabelValues {
        let fixed = self.template.node().metadata.labels.iter().flatten();
        let mut offered: LabelValues =
            fixed.map(|(key, value)| (key.clone(), BTreeSet::from([value.clone()]))).collect();
        offered.extend(self.labels.clone());
        offered
    }
}
