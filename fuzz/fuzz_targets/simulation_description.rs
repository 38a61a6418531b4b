//! Reads any description of a day, and plays it if it is small: nothing panics, the play ends, and the sums agree.
#![no_main]

use dra_alloc::GateSet;
use dra_attrs::Profile;
use examples::simulation::{Description, Recorded, Simulation, Statistics};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(day) = Description::read(text) else { return };
    if day.nodes.iter().map(|shape| u64::from(shape.count)).sum::<u64>() > 20 {
        return;
    }
    let hours = day.duration.millis() / 3_600_000 + 1;
    if day.pods.iter().map(|kind| u64::from(kind.per_hour) * hours).sum::<u64>() > 200 {
        return;
    }
    let Ok(simulation) = Simulation::new(&day, &Recorded::default(), Profile::V1_37, GateSet::of(Profile::V1_37))
    else {
        return;
    };
    let mut statistics = Statistics::new(&simulation);
    let end = simulation.run(|event| statistics.count(event));
    let sum = statistics.finish(&end).sum;
    assert_eq!(sum.arrived, sum.placed + sum.refused + sum.waiting);
});
