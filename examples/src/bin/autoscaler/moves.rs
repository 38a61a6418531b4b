//! Plan that empties nodes, as text and as an object.

use std::fmt;

use dra_alloc::DeviceId;
use dra_alloc::consolidation::{MovePlan, PodMove};
use serde::Serialize;

use super::refused::Refused;

/// Plan that empties nodes.
#[derive(Debug, Serialize)]
pub(crate) struct Moves {
    removable: Vec<String>,
    cost: u64,
    waves: Vec<Vec<Move>>,
    kept: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Move {
    pod: String,
    from: String,
    to: String,
    devices: Vec<String>,
}

impl Moves {
    pub(crate) fn new(plan: &MovePlan, kept: Vec<Refused>) -> Self {
        let waves = plan.waves.iter().map(|wave| wave.iter().map(Move::new).collect());
        Self { removable: plan.removed.clone(), cost: plan.cost, waves: waves.collect(), kept }
    }
}

impl Move {
    fn new(moved: &PodMove) -> Self {
        let results = moved.results.iter().filter_map(|(_, result)| result.devices.as_ref());
        let devices = results.flat_map(|devices| devices.results.iter().flatten());
        let devices = devices.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device).to_string());
        Self {
            pod: format!("{}/{}", moved.pod.namespace, moved.pod.name),
            from: moved.from.clone().unwrap_or_default(),
            to: moved.to.clone().unwrap_or_default(),
            devices: devices.collect(),
        }
    }
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.removable.is_empty() {
            writeln!(f, "no node can be emptied")?;
        } else {
            writeln!(f, "cordon: {}", self.removable.join(", "))?;
        }
        for (wave, number) in self.waves.iter().zip(1..) {
            writeln!(f, "wave {number}:")?;
            for Move { pod, from, to, devices } in wave {
                let devices = if devices.is_empty() { "no devices".to_owned() } else { devices.join(", ") };
                writeln!(f, "  {pod} from {from} to {to}: {devices}")?;
            }
        }
        if !self.removable.is_empty() {
            writeln!(f, "remove: {}", self.removable.join(", "))?;
        }
        self.kept.iter().try_for_each(|refused| writeln!(f, "{} stays: {}", refused.name, refused.reason))
    }
}
