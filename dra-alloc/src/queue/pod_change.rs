//! Changes of pods: which helps the pod itself, and which helps others.

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus};

use super::remedy::Remedy;

/// Phases of a pod that holds no room any more.
const FINISHED: [&str; 2] = ["Succeeded", "Failed"];

/// Returns true if a pod waits for a node: it has none, is not finished and is not being deleted.
pub(super) fn waits(pod: &Pod) -> bool {
    node_of(pod).is_none() && !is_finished(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Returns true if a scheduling gate holds a pod.
pub(super) fn has_gates(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

/// Returns the remedies that a change of a pod brings to the pod itself. Conditions and nominations are not among them: the
/// scheduler writes them itself.
pub(super) fn for_itself(old: &Pod, new: &Pod) -> Vec<Remedy> {
    let facets = [
        (claims_of(old) != claims_of(new), Remedy::OwnClaims),
        (old.metadata.labels != new.metadata.labels, Remedy::OwnLabels),
        (!requests_of(old).eq(requests_of(new)), Remedy::OwnRequests),
        (tolerations_of(old) != tolerations_of(new), Remedy::OwnTolerations),
    ];
    facets.into_iter().filter_map(|(has_changed, remedy)| has_changed.then_some(remedy)).collect()
}

/// Returns the remedies that a change of a pod brings to other pods.
pub(super) fn for_others(old: Option<&Pod>, new: Option<&Pod>) -> Vec<Remedy> {
    let on_node = |pod: Option<&Pod>| pod.is_some_and(|pod| node_of(pod).is_some() && !is_finished(pod));
    let same = old.zip(new).filter(|(old, new)| old.uid() == new.uid());
    match (on_node(old), on_node(new)) {
        (true, true) => match same {
            Some((old, new)) => changed_in_place(old, new),
            None => vec![Remedy::Room, Remedy::Neighbors],
        },
        (true, false) => vec![Remedy::Room, Remedy::Neighbors],
        (false, true) => {
            // Another node was kept for the pod.
            let is_elsewhere =
                same.is_some_and(|(old, new)| nomination_of(old).is_some_and(|kept| node_of(new) != Some(kept)));
            is_elsewhere.then_some(Remedy::Room).into_iter().chain([Remedy::Neighbors]).collect()
        }
        (false, false) => {
            let kept = old.and_then(nomination_of);
            let is_free = kept.is_some() && same.and_then(|(_, new)| nomination_of(new)) != kept;
            is_free.then_some(Remedy::Room).into_iter().collect()
        }
    }
}

fn changed_in_place(old: &Pod, new: &Pod) -> Vec<Remedy> {
    let facets = [
        (!requests_of(old).eq(requests_of(new)), Remedy::Room),
        (old.metadata.labels != new.metadata.labels, Remedy::Neighbors),
    ];
    facets.into_iter().filter_map(|(has_changed, remedy)| has_changed.then_some(remedy)).collect()
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

fn status_of(pod: &Pod) -> Option<&PodStatus> {
    pod.status.as_ref()
}

fn is_finished(pod: &Pod) -> bool {
    let phase = status_of(pod).and_then(|status| status.phase.as_deref());
    phase.is_some_and(|phase| FINISHED.contains(&phase))
}

fn nomination_of(pod: &Pod) -> Option<&str> {
    status_of(pod)?.nominated_node_name.as_deref().filter(|name| !name.is_empty())
}

fn claims_of(pod: &Pod) -> impl PartialEq {
    let status = status_of(pod);
    let generated = status.and_then(|status| status.resource_claim_statuses.as_deref()).unwrap_or_default();
    (generated, status.and_then(|status| status.extended_resource_claim_status.as_ref()))
}

/// Returns the resources of the containers, in their order, then those of the pod.
fn requests_of(pod: &Pod) -> impl Iterator<Item = impl PartialEq> {
    let spec = pod.spec.as_ref();
    let containers = |of: fn(&PodSpec) -> &[Container]| spec.into_iter().flat_map(of);
    let initial = containers(|spec| spec.init_containers.as_deref().unwrap_or_default());
    let all = initial.chain(containers(|spec| &spec.containers)).map(|container| container.resources.as_ref());
    all.chain([spec.and_then(|spec| spec.resources.as_ref())])
}

fn tolerations_of(pod: &Pod) -> impl PartialEq {
    pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}
