//! What the node lifecycle controller does to a node that it does not hear of (KEP-5233, Network partition). It sets Ready and
//! kubelet's other conditions to Unknown; conditions of gates stay as they are.

use k8s_openapi::api::core::v1::{NodeCondition, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::condition::{READY, UNKNOWN};
use crate::node::GatedNode;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, tolerates};

/// The KEP's `node-monitor-grace-period`, in seconds. Releases of Kubernetes differ: it is an argument.
pub const GRACE_PERIOD_SECONDS: i64 = 50;

/// `tolerationSeconds` that admission gives every pod for an unreachable node: five minutes.
pub const DEFAULT_TOLERATION_SECONDS: i64 = 300;

/// Key of the taints of an unreachable node.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// What the taints of a lost node take the place of: those of conditions that are Unknown now.
const OUTDATED: [(&str, &str); 5] = [
    ("node.kubernetes.io/not-ready", NO_SCHEDULE),
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
];

/// Conditions that the node lifecycle controller sets to Unknown.
const KUBELETS_OWN: [&str; 4] = [READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Marks a node as unreachable if Ready, whatever it says, has had no heartbeat for longer than the grace period. Says whether
/// it did: not if Ready is Unknown already. A node that never reported counts from its creation.
///
/// ```
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// use readiness::{node::GatedNode, partition::lose};
/// let mut node: GatedNode = serde_json::from_str(r#"{"status": {"conditions": [
///     {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}}"#)?;
/// let grace = SignedDuration::from_secs(50);
/// assert!(!lose(&mut node, grace, "2026-01-01T00:00:50Z".parse().unwrap()));
/// assert!(lose(&mut node, grace, "2026-01-01T00:00:51Z".parse().unwrap()));
/// assert!(!node.view().is_ready());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn lose(node: &mut GatedNode, grace: SignedDuration, now: Timestamp) -> bool {
    let view = node.view();
    let created = node.node.metadata.creation_timestamp.clone();
    let ready = view.condition(READY);
    let heartbeat = ready.map_or(created.as_ref(), |ready| ready.last_heartbeat_time.as_ref());
    let is_lost = heartbeat.is_some_and(|time| now.duration_since(time.0) > grace);
    if !is_lost || ready.is_some_and(|ready| ready.status == UNKNOWN) {
        return false;
    }
    let conditions = node.node.status.get_or_insert_default().conditions.get_or_insert_default();
    for name in KUBELETS_OWN {
        set_unknown(conditions, name, created.as_ref(), now);
    }
    let taints = node.node.spec.get_or_insert_default().taints.get_or_insert_default();
    taints.retain(|taint| !OUTDATED.contains(&(&taint.key, &taint.effect)));
    for effect in [NO_SCHEDULE, NO_EXECUTE] {
        if !taints.iter().any(|taint| taint.key == UNREACHABLE && taint.effect == effect) {
            let time_added = (effect == NO_EXECUTE).then_some(Time(now));
            taints.push(Taint { key: UNREACHABLE.to_owned(), effect: effect.to_owned(), time_added, value: None });
        }
    }
    true
}

/// Sets a condition to Unknown, and adds it if it is missing. One that is Unknown keeps its reason.
fn set_unknown(conditions: &mut Vec<NodeCondition>, name: &str, created: Option<&Time>, now: Timestamp) {
    let place = conditions.iter().position(|condition| condition.type_ == name);
    let old = place.and_then(|index| conditions.get(index));
    if old.is_some_and(|old| old.status == UNKNOWN) {
        return;
    }
    let (reason, message) = match old {
        Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
        None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
    };
    let new = NodeCondition {
        type_: name.to_owned(),
        status: UNKNOWN.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: old.map_or(created, |old| old.last_heartbeat_time.as_ref()).cloned(),
        last_transition_time: Some(Time(now)),
    };
    match place.and_then(|index| conditions.get_mut(index)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// What becomes of a running pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Eviction {
    /// It stays.
    Never,
    /// It is evicted at an instant, unless the taint goes before.
    At(Timestamp),
}

/// When a running pod is evicted by the taints of its node: those with effect `NoExecute`. Of the tolerations that cover a
/// taint the first counts, as in Kubernetes. Gates alone never evict; only a `readinessTaint` with that effect does, this
/// way.
///
/// ```
/// use k8s_openapi::api::core::v1::{NodeCondition, Taint, Toleration};
/// use readiness::partition::{Eviction, eviction};
/// let now = "2026-01-01T00:00:00Z".parse().unwrap();
/// let taint = Taint { key: "k".into(), effect: "NoExecute".into(), ..Taint::default() };
/// assert_eq!(eviction(&[taint.clone()], &[], now), Eviction::At(now));
/// let forever = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
/// assert_eq!(eviction(&[taint], &[forever], now), Eviction::Never);
/// ```
#[must_use]
pub fn eviction(taints: &[Taint], tolerations: &[Toleration], now: Timestamp) -> Eviction {
    let evicting = taints.iter().filter(|taint| taint.effect == NO_EXECUTE);
    let instants = evicting.filter_map(|taint| {
        let Some(covering) = tolerations.iter().find(|one| tolerates(one, taint)) else { return Some(now) };
        let seconds = covering.toleration_seconds?;
        let added = taint.time_added.as_ref().map_or(now, |time| time.0);
        added.checked_add(SignedDuration::from_secs(seconds.max(0))).ok()
    });
    instants.min().map_or(Eviction::Never, Eviction::At)
}
