//! Simulation of a day: pods with claims come to a cluster, get devices, wait, give up and go.
//!
//! A [`Description`] says which nodes there are and which pods come, or names counts beside objects that were [`Recorded`].
//! [`Simulation::run`] plays the day and tells each event, and [`Statistics`] counts events. A run depends on nothing but its
//! input: times are milliseconds of the day, and chance comes from the seed. Every choice of devices is dra-alloc's.
//!
//! ```
//! use dra_alloc::GateSet;
//! use dra_attrs::Profile;
//! use examples::simulation::{Description, Recorded, Simulation, Statistics};
//! let day = Description::read("
//! duration: 4h
//! classes: {gpu: device.driver == 'gpu.example.com'}
//! nodes: [{name: node, count: 2, devices: [{driver: gpu.example.com, count: 4}]}]
//! pods: [{name: train, perHour: 10, stay: 1h, claims: [{requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}]}]
//! ")?;
//! let simulation = Simulation::new(&day, &Recorded::default(), Profile::V1_37, GateSet::of(Profile::V1_37))?;
//! let mut statistics = Statistics::new(&simulation);
//! let end = simulation.run(|event| statistics.count(event));
//! let summary = statistics.finish(&end);
//! assert_eq!(summary.sum.arrived, summary.sum.placed + summary.sum.refused + summary.sum.waiting);
//! # Ok::<(), examples::simulation::DescriptionError>(())
//! ```

mod arrivals;
mod cluster;
mod consolidate;
mod description;
mod event;
mod preempt;
mod queue;
mod recorded;
mod run;
mod scheduler;
mod statistics;
mod template;

use arrivals::{Arrivals, arrivals};
use cluster::Cluster;
pub use description::{
    CardGroup, Description, DescriptionError, DeviceGroup, MAX_DEVICES, MAX_NODES, MAX_PODS, MAX_VARIANTS, NodeShape,
    Order, Partition, Placing, PodKind, Preempting, Span, WhatIf,
};
use dra_alloc::objective::Objective;
use dra_alloc::pods::PodOptions;
use dra_alloc::{GateSet, Profile};
use dra_attrs::{Component, FieldError, FieldErrors, FieldPath};
pub use event::{Event, EventKind, HeldDevice, Refusal};
pub use recorded::{Recorded, RecordedError, RecordedPod};
pub use run::End;
pub use statistics::{KindCounts, PriorityCounts, RefusedPods, Statistics, Summary, Use, Waits};

/// Largest number of pairs of a kind of pods and a node: a run remembers the last "no" of each.
const MAX_PAIRS: usize = 4_000_000;

/// Cluster, and all pods of a day.
#[derive(Debug)]
pub struct Simulation {
    /// End of the day, in milliseconds.
    duration: u64,
    placing: Placing,
    order: Order,
    preempt: Preempting,
    /// Milliseconds between two plans that empty nodes.
    consolidate: Option<u64>,
    objective: Objective,
    options: PodOptions,
    cluster: Cluster,
    arrivals: Arrivals,
}

impl Simulation {
    /// Builds the cluster of a description and draws its pods. The objects and pods of `recorded` come beside them.
    ///
    /// # Errors
    /// An object of the description is not valid, two objects have one name, or there is too much of something.
    ///
    /// # Complexity
    /// Linear in the number of devices and pods.
    pub fn new(
        description: &Description,
        recorded: &Recorded,
        profile: Profile,
        gates: GateSet,
    ) -> Result<Self, DescriptionError> {
        description.check()?;
        let cluster = Cluster::new(description, recorded, profile, gates)?;
        let arrivals = arrivals(description, recorded, profile, gates)?;
        let pairs = arrivals.kinds.len().saturating_mul(cluster.nodes.len());
        if pairs > MAX_PAIRS {
            let detail = format!("kinds of pods times nodes must be at most {MAX_PAIRS}");
            let error = FieldError::invalid(&FieldPath::new("pods"), pairs.to_string(), detail);
            return Err(DescriptionError::Fields(FieldErrors::from_iter([error])));
        }
        Ok(Self {
            duration: description.duration.millis(),
            placing: description.placing,
            order: description.order,
            preempt: description.preempt,
            consolidate: description.consolidate.map(Span::millis),
            objective: description.objective.clone(),
            options: PodOptions::new(Component::new(profile, gates)),
            cluster,
            arrivals,
        })
    }

    /// Returns the length of the day, in milliseconds.
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.duration
    }

    /// Returns the number of nodes.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.cluster.nodes.len()
    }

    /// Returns the number of pods that come during the day.
    #[must_use]
    pub const fn pods(&self) -> usize {
        self.arrivals.pods.len()
    }
}
