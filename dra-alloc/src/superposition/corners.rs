//! Corners: the kinds of nodes that a shape may become, as far as anybody tells them apart, and boxes of them.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Index;
use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement};

use super::label_values::LabelValues;
use super::node_shape::{NodeShape, ShapeError};
use crate::autoscaler::NodeTemplate;

/// Largest number of corners of a shape.
const MOST_CORNERS: usize = 1_000;

/// Label with classes of values that nobody tells apart.
#[derive(Debug)]
struct Axis {
    label: String,
    classes: Vec<BTreeSet<String>>,
}

/// Kinds of nodes that a shape may become: one for each combination of classes of values.
#[derive(Debug)]
pub(super) struct Corners {
    axes: Vec<Axis>,
    nodes: Vec<Node>,
}

/// Set of combinations: for each axis the classes of which the node has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LabelBox(Vec<BTreeSet<usize>>);

impl Corners {
    /// Finds the kinds of nodes that the selectors tell apart; with `is_exact` each value makes a kind of its own.
    ///
    /// # Errors
    /// A label has no value, or there are too many kinds.
    pub(super) fn new(
        shape: &NodeShape<'_>,
        position: Index<NodeTemplate>,
        selectors: &[&NodeSelector],
        is_exact: bool,
    ) -> Result<Self, ShapeError> {
        let axis_of = |(label, values): (&String, &BTreeSet<String>)| {
            if values.is_empty() {
                return Err(ShapeError::NoValues { shape: position, label: label.clone() });
            }
            let classes = if is_exact { each_alone(values) } else { told_apart(label, values, selectors) };
            Ok(Axis { label: label.clone(), classes })
        };
        let axes: Vec<Axis> = shape.labels().iter().map(axis_of).collect::<Result<_, _>>()?;
        let combinations = axes.iter().map(|axis| axis.classes.len()).fold(1, usize::saturating_mul);
        if combinations > MOST_CORNERS {
            return Err(ShapeError::TooMany { shape: position, combinations, most: MOST_CORNERS });
        }
        let mut corners = Self { axes, nodes: Vec::new() };
        corners.nodes = (0..combinations).map(|corner| corners.node(shape.template().node(), corner)).collect();
        Ok(corners)
    }

    /// Returns a node with the labels of a corner.
    fn node(&self, template: &Node, corner: usize) -> Node {
        let mut node = template.clone();
        let labels = node.metadata.labels.get_or_insert_default();
        for (axis, class) in self.axes.iter().zip(self.classes_of(corner)) {
            let value = axis.classes.get(class).and_then(BTreeSet::first);
            labels.extend(value.map(|value| (axis.label.clone(), value.clone())));
        }
        node
    }

    /// Returns the class of each axis at a corner.
    fn classes_of(&self, corner: usize) -> impl Iterator<Item = usize> {
        self.axes.iter().scan(corner, |left, axis| {
            let class = *left % axis.classes.len();
            *left /= axis.classes.len();
            Some(class)
        })
    }

    /// Returns all nodes, by their corners.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the box of all corners.
    pub(super) fn all(&self) -> LabelBox {
        LabelBox(self.axes.iter().map(|axis| (0..axis.classes.len()).collect()).collect())
    }

    /// Returns the boxes of one corner each, in the order of the corners.
    pub(super) fn singles(&self) -> std::vec::IntoIter<LabelBox> {
        let single = |corner| LabelBox(self.classes_of(corner).map(|class| BTreeSet::from([class])).collect());
        (0..self.nodes.len()).map(single).collect::<Vec<_>>().into_iter()
    }

    /// Returns the corners of a box, in their order.
    pub(super) fn of(&self, label_box: &LabelBox) -> Vec<usize> {
        let is_in = |corner: &usize| {
            label_box.0.iter().zip(self.classes_of(*corner)).all(|(some, class)| some.contains(&class))
        };
        (0..self.nodes.len()).filter(is_in).collect()
    }

    /// Returns the labels of which a box has not all values, with those that it has.
    pub(super) fn narrowed(&self, label_box: &LabelBox) -> LabelValues {
        let narrowed = self.axes.iter().zip(&label_box.0).filter(|(axis, some)| some.len() < axis.classes.len());
        let values = |axis: &Axis, some: &BTreeSet<usize>| {
            some.iter().filter_map(|class| axis.classes.get(*class)).flatten().cloned().collect()
        };
        narrowed.map(|(axis, some)| (axis.label.clone(), values(axis, some))).collect()
    }
}

impl LabelBox {
    /// Returns the number of corners.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(BTreeSet::len).product()
    }

    /// Returns the boxes with one class less of one axis.
    pub(super) fn narrower(&self) -> impl Iterator<Item = Self> {
        let axes = self.0.iter().enumerate().filter(|(_, some)| some.len() > 1);
        axes.flat_map(move |(axis, some)| {
            some.iter().map(move |class| {
                let mut narrower = self.clone();
                narrower.0.get_mut(axis).into_iter().for_each(|some| _ = some.remove(class));
                narrower
            })
        })
    }

    /// Returns true if all corners of this box are in another one.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own.is_subset(other))
    }
}

fn each_alone(values: &BTreeSet<String>) -> Vec<BTreeSet<String>> {
    values.iter().map(|value| BTreeSet::from([value.clone()])).collect()
}

/// Returns the values of a label in classes: those that the same requirements name. An operator that compares numbers tells all
/// values apart.
fn told_apart(label: &str, values: &BTreeSet<String>, selectors: &[&NodeSelector]) -> Vec<BTreeSet<String>> {
    let terms = selectors.iter().flat_map(|selector| &selector.node_selector_terms);
    let all = terms.flat_map(|term| term.match_expressions.iter().flatten());
    let read: Vec<&NodeSelectorRequirement> = all.filter(|requirement| requirement.key == label).collect();
    if read.iter().any(|requirement| matches!(requirement.operator.as_str(), "Gt" | "Lt")) {
        return each_alone(values);
    }
    let mut named_by: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (position, requirement) in read.iter().enumerate() {
        for value in requirement.values.iter().flatten() {
            named_by.entry(value).or_default().insert(position);
        }
    }
    let mut classes: BTreeMap<BTreeSet<usize>, BTreeSet<String>> = BTreeMap::new();
    for value in values {
        let named = named_by.get(value.as_str()).cloned().unwrap_or_default();
        classes.entry(named).or_default().insert(value.clone());
    }
    classes.into_values().collect()
}
