//! Plans any manifests that are small: nothing panics, each pod is placed or waits, and the answer is the same again.
#![no_main]

use dra_alloc::{GateSet, Profile};
use examples::lint::lint;
use examples::manifest::Manifests;
use examples::plan::{Rules, plan};
use examples::preempt::Who;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = || {
        let mut manifests = Manifests::default().with_templates(vec!["MPIJob=spec.*.template".parse().unwrap()]);
        manifests.read("fuzz.yaml", text);
        manifests
    };
    let _ = lint(&read(), Profile::V1_37);
    let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Whole };
    let (Ok(one), Ok(other)) = (plan(read(), rules), plan(read(), rules)) else { return };
    let waiting: usize =
        one.workloads.iter().flat_map(|workload| &workload.waiting).map(|group| group.pods.len()).sum();
    assert_eq!(one.placed + waiting, one.pods);
    assert_eq!(one.text("default"), other.text("default"));
});
