//! Pods of workloads and claims of templates: made as a cluster makes them, and allocated as a plan does.

use dra_alloc::pods::PodOptions;
use dra_attrs::Component;
use examples::manifest::Manifests;
use examples::output::say;
use examples::plan::{PlanError, Rules, allocate};
use examples::preempt::Who;
use examples::workload::{KINDS, is_needed, make};

/// Kinds of objects that the program always uses: slices for a diagnosis.
pub(crate) const USED: [&str; 3] = ["Pod", "ResourceClaim", "ResourceSlice"];

/// Kinds of objects that say where a pod of a workload runs, and with which devices.
const PLACING: [&str; 3] = ["DeviceClass", "DeviceTaintRule", "Node"];

/// Says which objects are not used.
pub(crate) fn ignored(manifests: &Manifests, used: &[&str]) {
    manifests.ignored_lines("kubelet", used).iter().for_each(say);
}

/// Makes the pods and claims of workloads and templates, if there are any, and allocates the claims where the manifests have
/// room. Says what was made, and why the pod that is asked about has no place.
pub(crate) fn made(mut manifests: Manifests, settings: Component, asked: &str) -> Result<Manifests, PlanError> {
    if !is_needed(&manifests) {
        ignored(&manifests, &USED);
        return Ok(manifests);
    }
    ignored(&manifests, &[&USED[..], &PLACING, &KINDS].concat());
    let rules = Rules { profile: settings.profile(), gates: settings.gates(), who: Who::Room };
    let allocated = allocate(&mut manifests, rules)?;
    allocated.made.lines("kubelet").iter().for_each(say);
    let is_asked = |pod: &str| pod == asked || pod == format!("default/{asked}");
    for (pod, node) in allocated.placed.iter().filter(|(pod, _)| is_asked(pod)) {
        say(&format_args!("kubelet: pod {pod} is placed on {node}, as kubectl dra plan does"));
    }
    for (pod, reason) in allocated.waiting.iter().filter(|(pod, _)| is_asked(pod)) {
        say(&format_args!("kubelet: pod {pod} has no place, so that its claims are not allocated: {reason}"));
    }
    Ok(manifests)
}

/// Makes the pods of workloads, if there are any, to tell which are active.
pub(crate) fn active(mut manifests: Manifests, settings: Component) -> Manifests {
    if is_needed(&manifests) {
        make(&mut manifests, PodOptions::new(settings)).lines("kubelet").iter().for_each(say);
    }
    ignored(&manifests, &[&USED[..], &KINDS].concat());
    manifests
}
