//! Description of a day: shapes of nodes, kinds of pods, and what to compare with.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use dra_alloc::objective::Objective;
use dra_attrs::{FieldError, FieldErrors, FieldPath};
use k8s_openapi::jiff::SignedDuration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Largest number of nodes.
pub const MAX_NODES: usize = 20_000;

/// Largest number of devices of all nodes. A device with attributes takes some KiB of memory.
pub const MAX_DEVICES: usize = 250_000;

/// Largest number of attributes and capacities of all devices.
const MAX_VALUES: usize = 1_000_000;

/// Largest number of devices of one driver on a node: those of one slice.
const MAX_PER_DRIVER: u32 = 128;

/// Largest number of cards of a group.
const MAX_CARDS: u32 = 32;

/// Largest number of partitions of a card: those of one slice with counters.
const MAX_PARTITIONS: usize = 64;

/// Largest number of pods of a day, as expected from the rates.
pub const MAX_PODS: u64 = 1_000_000;

/// Largest number of clusters that are compared with that of the description.
pub const MAX_VARIANTS: usize = 20;

/// Longest name of a comparison.
const MAX_NAME: usize = 64;

/// Largest number of times that nodes are emptied.
const MAX_CONSOLIDATIONS: u64 = 10_000;

/// Longest duration: a year.
const MAX_MILLIS: u64 = 366 * 24 * 3_600_000;

const MILLIS_PER_HOUR: u64 = 3_600_000;

/// Reason that there is nothing to simulate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The text is not YAML.
    #[error(transparent)]
    Yaml(#[from] Box<serde_saphyr::Error>),
    /// A field is unknown, missing or of a wrong type.
    #[error(transparent)]
    Field(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// Fields have values that can't be used.
    #[error(transparent)]
    Fields(#[from] FieldErrors),
    /// A part of the description is not what the object needs that is made of it.
    #[error("{place}: {source}")]
    Object {
        /// Field of the description.
        place: String,
        /// Field of the object, and reason.
        source: serde_path_to_error::Error<serde_json::Error>,
    },
    /// A part of the description has a field that its object has not.
    #[error("{place}: {field}: unknown field")]
    Unknown {
        /// Field of the description.
        place: String,
        /// Field of the object.
        field: String,
    },
    /// The API server would refuse the object that is made of a part of the description.
    #[error("{place}: {source}")]
    Invalid {
        /// Field of the description.
        place: String,
        /// Problems of the object.
        source: FieldErrors,
    },
}

/// Duration, written as `90s` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(u64);

impl Span {
    /// Returns the number of milliseconds.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    fn text(self) -> String {
        format!("{:#}", SignedDuration::from_millis(i64::try_from(self.0).unwrap_or(i64::MAX)))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span: SignedDuration = text.parse().map_err(|_| format!("{text:?} is no duration such as \"1h 30m\""))?;
        let millis = u64::try_from(span.as_millis()).ok().filter(|millis| *millis <= MAX_MILLIS);
        millis.map(Self).ok_or_else(|| format!("{text:?} is not between zero and 366 days"))
    }
}

/// Description of a day.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Description {
    /// Number from which arrivals and stays are drawn.
    #[serde(default)]
    pub seed: u64,
    /// Length of the day.
    pub duration: Span,
    /// Order in which nodes are tried.
    #[serde(default)]
    pub placing: Placing,
    /// Order in which waiting pods are tried.
    #[serde(default)]
    pub order: Order,
    /// Rule by which pods give up their devices for pods of higher priority.
    #[serde(default)]
    pub preempt: Preempting,
    /// Time between two plans that empty nodes by moving pods; never without it.
    pub consolidate: Option<Span>,
    /// Rule by which devices are chosen: levels of terms. A pod goes to the node where they have the least value.
    #[serde(default, deserialize_with = "objective")]
    pub objective: Objective,
    /// Device classes: the CEL expression of each, by name.
    #[serde(default)]
    pub classes: BTreeMap<String, String>,
    /// Shapes of nodes.
    #[serde(default)]
    pub nodes: Vec<NodeShape>,
    /// Kinds of pods.
    #[serde(default)]
    pub pods: Vec<PodKind>,
    /// Changes to compare with.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
}

/// Nodes with equal devices.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct NodeShape {
    /// Begin of the nodes' names: `NAME-0`, `NAME-1`, …
    pub name: String,
    /// Number of nodes.
    pub count: u32,
    /// Devices of each node. Those of one driver are a pool.
    #[serde(default)]
    pub devices: Vec<DeviceGroup>,
    /// Cards of each node that are given away in partitions.
    #[serde(default)]
    pub cards: Vec<CardGroup>,
}

/// Devices that have the same attributes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeviceGroup {
    /// Name of the driver.
    pub driver: String,
    /// Number of devices.
    pub count: u32,
    /// Attributes, as in a `ResourceSlice`.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// Capacities, as in a `ResourceSlice`.
    #[serde(default)]
    pub capacity: Map<String, Value>,
}

/// Cards with the same partitions. What a partition takes of its card's counters, no other one can have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CardGroup {
    /// Name of the driver.
    pub driver: String,
    /// Number of cards.
    pub count: u32,
    /// Counters of each card, by name.
    pub counters: Map<String, Value>,
    /// Partitions of each card: a device for each place.
    pub partitions: Vec<Partition>,
}

/// Partition of a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Partition {
    /// Name, of which the devices' names are made: `gpu-CARD-NAME-PLACE`.
    pub name: String,
    /// Attributes, as in a `ResourceSlice`.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// Capacities, as in a `ResourceSlice`.
    #[serde(default)]
    pub capacity: Map<String, Value>,
    /// Counters that the partition takes at each of its places.
    pub places: Vec<Map<String, Value>>,
}

/// Pods with equal claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PodKind {
    /// Begin of the pods' names: `NAME-0`, `NAME-1`, …
    pub name: String,
    /// Mean number of pods an hour; the times between them are exponentially distributed.
    pub per_hour: u32,
    /// Mean of the time from placing to end, which is exponentially distributed. Without it pods stay to the end of the day.
    pub stay: Option<Span>,
    /// Time after which a pod that waits gives up. Without it pods wait to the end of the day.
    pub patience: Option<Span>,
    /// Priority: pods with a lower one may have to give up their devices for it.
    #[serde(default)]
    pub priority: i32,
    /// True for pods that do not move.
    #[serde(default)]
    pub fixed: bool,
    /// Claims of each pod, each as `spec.devices` of a `ResourceClaim`.
    pub claims: Vec<Value>,
}

/// Order in which nodes are tried. A pod takes the first node that can serve its claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a program offers each")]
pub enum Placing {
    /// The order in which the nodes are described
    #[default]
    FirstFit,
    /// From the node that the last pod has taken
    NextFit,
    /// The node with the fewest free devices first
    BestFit,
}

/// Order in which waiting pods are tried when devices become free. A pod that does not fit lets others pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a program offers each")]
pub enum Order {
    /// The pod that has come first
    #[default]
    Arrival,
    /// The pod that asks for the fewest devices
    SmallestFirst,
    /// The pod that asks for the most devices
    LargestFirst,
}

/// Rule by which pods give up their devices for a pod of higher priority that finds no room. They come back at once, begin
/// anew, and wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a program offers each")]
pub enum Preempting {
    /// No pod does, as in Kubernetes 1.37
    #[default]
    Never,
    /// By kube-scheduler's rule, as KEP-5690 applies it to devices
    Kube,
    /// The least harm by the same criteria, of all nodes and sets of pods
    Least,
}

/// Changes of a description. What is not named stays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct WhatIf {
    /// Name in the table.
    pub name: String,
    /// Numbers of nodes, by the name of the shape.
    #[serde(default)]
    pub nodes: BTreeMap<String, u32>,
    /// Mean numbers of pods an hour, by the name of the kind.
    #[serde(default)]
    pub pods: BTreeMap<String, u32>,
    /// Order in which nodes are tried.
    pub placing: Option<Placing>,
    /// Order in which waiting pods are tried.
    pub order: Option<Order>,
    /// Rule by which pods give up their devices.
    pub preempt: Option<Preempting>,
    /// Time between two plans that empty nodes.
    pub consolidate: Option<Span>,
    /// Rule by which devices are chosen.
    #[serde(default, deserialize_with = "some_objective")]
    pub objective: Option<Objective>,
    /// Number from which arrivals and stays are drawn.
    pub seed: Option<u64>,
}

impl CardGroup {
    /// Checks the number of cards and of their partitions, and returns the number of devices.
    fn check_size(&self, field: &FieldPath<'_>, errors: &mut FieldErrors) -> usize {
        let of_card = self.partitions.iter().map(|partition| partition.places.len()).sum();
        let cards = u128::from(self.count);
        at_most(&field.child("count"), "cards", cards, u128::from(MAX_CARDS), errors);
        at_most(&field.child("partitions"), "places", of_card as u128, MAX_PARTITIONS as u128, errors);
        usize::try_from(self.count).unwrap_or(usize::MAX).saturating_mul(of_card)
    }
}

impl Description {
    /// Reads a description: YAML or JSON.
    ///
    /// # Errors
    /// The text is not YAML, a field is unknown or missing, or a value can't be used; the error names the field. The objects
    /// that are made of the description are checked by [`Simulation::new`](super::Simulation::new).
    ///
    /// ```
    /// use examples::simulation::Description;
    /// let error = Description::read("duration: 0s\nnodes: [{name: a, count: 1, devices: []}]").unwrap_err();
    /// assert_eq!(error.to_string(), "duration: Invalid value: \"0s\": must be longer than zero");
    /// ```
    pub fn read(text: &str) -> Result<Self, DescriptionError> {
        let options = serde_saphyr::options! { with_snippet: false };
        let json: Value = serde_saphyr::from_str_with_options(text, options).map_err(Box::new)?;
        let description: Self = serde_path_to_error::deserialize(json)?;
        description.check()?;
        description.variants().try_for_each(|(_, variant)| variant.check())?;
        Ok(description)
    }

    /// Returns the description with each of its changes, with the name of the change.
    pub fn variants(&self) -> impl Iterator<Item = (&str, Self)> {
        self.what_if.iter().map(|change| (change.name.as_str(), self.with(change)))
    }

    /// Changes the rates of pods, also those of the changes, to some percent of what they are.
    pub fn scale(&mut self, percent: u32) {
        let of_kinds = self.pods.iter_mut().map(|kind| &mut kind.per_hour);
        for rate in of_kinds.chain(self.what_if.iter_mut().flat_map(|change| change.pods.values_mut())) {
            *rate = u32::try_from(u64::from(*rate) * u64::from(percent) / 100).unwrap_or(u32::MAX);
        }
    }

    fn with(&self, change: &WhatIf) -> Self {
        let mut changed = Self { what_if: Vec::new(), ..self.clone() };
        for shape in &mut changed.nodes {
            shape.count = change.nodes.get(&shape.name).copied().unwrap_or(shape.count);
        }
        for kind in &mut changed.pods {
            kind.per_hour = change.pods.get(&kind.name).copied().unwrap_or(kind.per_hour);
        }
        changed.placing = change.placing.unwrap_or(self.placing);
        changed.order = change.order.unwrap_or(self.order);
        changed.preempt = change.preempt.unwrap_or(self.preempt);
        changed.consolidate = change.consolidate.or(self.consolidate);
        changed.objective = change.objective.clone().unwrap_or_else(|| self.objective.clone());
        changed.seed = change.seed.unwrap_or(self.seed);
        changed
    }

    /// Checks the numbers of a description, and the names that it refers to.
    pub(super) fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::new();
        if self.duration.millis() == 0 {
            errors.push(FieldError::invalid(&FieldPath::new("duration"), "0s", "must be longer than zero"));
        }
        if let Some(between) = self.consolidate
            && self.duration.millis() / MAX_CONSOLIDATIONS >= between.millis()
        {
            let detail = format!("must leave at most {MAX_CONSOLIDATIONS} of them a day");
            errors.push(FieldError::invalid(&FieldPath::new("consolidate"), between.text(), detail));
        }
        unique(&FieldPath::new("nodes"), self.nodes.iter().map(|shape| &shape.name), &mut errors);
        let pods = FieldPath::new("pods");
        unique(&pods, self.pods.iter().map(|kind| &kind.name), &mut errors);
        for (index, _) in self.pods.iter().enumerate().filter(|(_, kind)| kind.claims.is_empty()) {
            errors.push(FieldError::required(&pods.index(index).child("claims"), "pods without claims need no device"));
        }
        self.check_sizes(&mut errors);
        self.check_changes(&mut errors);
        errors.into_result()
    }

    fn check_sizes(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("nodes");
        let [mut nodes, mut devices, mut values] = [0_usize; 3];
        for (index, shape) in self.nodes.iter().enumerate() {
            let count = usize::try_from(shape.count).unwrap_or(usize::MAX);
            nodes = nodes.saturating_add(count);
            for (number, group) in shape.cards.iter().enumerate() {
                let field = at.index(index);
                let field = field.child("cards");
                let partitions = group.check_size(&field.index(number), errors);
                devices = devices.saturating_add(count.saturating_mul(partitions));
            }
            let mut of_driver = BTreeMap::<&str, u32>::new();
            for (number, group) in shape.devices.iter().enumerate() {
                let sum = of_driver.entry(&group.driver).or_default();
                *sum = sum.saturating_add(group.count);
                if *sum > MAX_PER_DRIVER {
                    let detail = format!("must be at most {MAX_PER_DRIVER} devices of one driver on a node");
                    let field = &at.index(index);
                    let field = &field.child("devices");
                    let field = &field.index(number);
                    errors.push(FieldError::invalid(&field.child("count"), group.count.to_string(), detail));
                }
                let alike = count.saturating_mul(usize::try_from(group.count).unwrap_or(usize::MAX));
                devices = devices.saturating_add(alike);
                values = values.saturating_add(alike.saturating_mul(group.attributes.len() + group.capacity.len()));
            }
        }
        let days = u128::from(self.duration.millis());
        let pods = self.pods.iter().map(|kind| u128::from(kind.per_hour) * days / u128::from(MILLIS_PER_HOUR)).sum();
        at_most(&at, "nodes", nodes as u128, MAX_NODES as u128, errors);
        at_most(&at, "devices", devices as u128, MAX_DEVICES as u128, errors);
        at_most(&at, "attributes and capacities of devices", values as u128, MAX_VALUES as u128, errors);
        at_most(&FieldPath::new("pods"), "pods", pods, MAX_PODS.into(), errors);
    }

    fn check_changes(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("whatIf");
        unique(&at, self.what_if.iter().map(|change| &change.name), errors);
        if self.what_if.len() > MAX_VARIANTS {
            errors.push(FieldError::too_many(&at, self.what_if.len(), MAX_VARIANTS));
        }
        for (index, change) in self.what_if.iter().enumerate() {
            let at = at.index(index);
            if change.name.is_empty() || change.name.len() > MAX_NAME {
                let detail = format!("must have 1 to {MAX_NAME} bytes");
                errors.push(FieldError::invalid(&at.child("name"), &change.name, detail));
            }
            for name in change.nodes.keys().filter(|name| !self.nodes.iter().any(|shape| shape.name == **name)) {
                errors.push(FieldError::not_found(&at.child("nodes"), name));
            }
            for name in change.pods.keys().filter(|name| !self.pods.iter().any(|kind| kind.name == **name)) {
                errors.push(FieldError::not_found(&at.child("pods"), name));
            }
        }
    }
}

/// Reads levels of terms.
fn objective<'d, D: Deserializer<'d>>(from: D) -> Result<Objective, D::Error> {
    Objective::from_json(&Value::deserialize(from)?).map_err(D::Error::custom)
}

fn some_objective<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Objective>, D::Error> {
    objective(from).map(Some)
}

fn unique<'n>(list: &FieldPath<'_>, names: impl Iterator<Item = &'n String>, errors: &mut FieldErrors) {
    let mut known = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&list.index(index).child("name"), name));
        }
    }
}

fn at_most(field: &FieldPath<'_>, what: &str, count: u128, most: u128, errors: &mut FieldErrors) {
    if count > most {
        let detail = format!("must be at most {most} {what} together");
        errors.push(FieldError::invalid(field, count.to_string(), detail));
    }
}
