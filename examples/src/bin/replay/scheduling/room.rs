//! Answers of `scheduling.preempt`: the room that pods of lower priority make, or the reason for none.

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodIdentity;
use dra_alloc::preemption::{Blocker, HarmProof, NoRoom, PreemptionAnswer, Room};
use serde_json::{Map, Value, json};

use super::input::devices;

/// Returns the answer to a search for room.
pub(super) fn written(answer: &PreemptionAnswer) -> Value {
    match answer {
        PreemptionAnswer::Room(room) => written_room(room),
        PreemptionAnswer::NoRoom(reason) => written_reason(reason),
    }
}

fn written_room(room: &Room) -> Value {
    let results: Map<String, Value> =
        room.results.iter().map(|(claim, allocation)| (claim.to_string(), json!(devices(allocation)))).collect();
    let proof = match &room.proof {
        HarmProof::Greedy => json!("greedy"),
        HarmProof::Irreducible { bound } => json!({"irreducible": {"bound": bound}}),
        _ => json!("least"),
    };
    let mut answer = json!({
        "outcome": "room", "node": room.node(), "victims": names(&room.victims), "violations": room.violations,
        "freed": texts(&room.freed), "idle": texts(&room.idle), "deallocate": texts(&room.deallocate),
        "results": results, "proof": proof,
    });
    if let Some(fields) = answer.as_object_mut() {
        match &room.value {
            Some(value) => fields.insert("value".to_owned(), json!(value)),
            None => fields.insert("candidates".to_owned(), candidates(room)),
        };
    }
    answer
}

fn candidates(room: &Room) -> Value {
    let candidates = room.candidates.iter().map(|candidate| {
        json!({"node": candidate.node, "victims": names(&candidate.victims), "violations": candidate.violations})
    });
    candidates.collect()
}

fn names(pods: &[PodIdentity]) -> Vec<String> {
    pods.iter().map(name).collect()
}

fn name(pod: &PodIdentity) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

fn texts(claims: &[ClaimKey]) -> Vec<String> {
    claims.iter().map(ToString::to_string).collect()
}

fn written_reason(reason: &NoRoom) -> Value {
    match reason {
        NoRoom::GateOff => json!({"outcome": "none", "reason": "gate_off"}),
        NoRoom::MayNotPreempt(eligibility) => {
            json!({"outcome": "none", "reason": "may_not_preempt", "message": eligibility.message()})
        }
        NoRoom::Hopeless => json!({"outcome": "none", "reason": "hopeless"}),
        NoRoom::Blocked { by } => {
            json!({"outcome": "none", "reason": "blocked", "blockers": by.iter().map(blocker).collect::<Vec<_>>()})
        }
        NoRoom::Stopped { best } => {
            json!({"outcome": "none", "reason": "stopped", "best": best.as_deref().map(written_room)})
        }
        _ => json!({"outcome": "none"}),
    }
}

fn blocker(blocker: &Blocker) -> Value {
    match blocker {
        Blocker::Priority { pod, claim: Some(claim) } => {
            json!({"kind": "priority", "pod": name(pod), "claim": claim.to_string()})
        }
        Blocker::Priority { pod, claim: None } => json!({"kind": "priority", "pod": name(pod)}),
        Blocker::Group { claim } => json!({"kind": "group", "claim": claim.to_string()}),
        Blocker::Reach { claim } => json!({"kind": "reach", "claim": claim.to_string()}),
        Blocker::Consumer { claim, uid } => {
            json!({"kind": "consumer", "claim": claim.to_string(), "consumer": uid})
        }
        Blocker::Budget { namespace, name } => json!({"kind": "budget", "pdb": format!("{namespace}/{name}")}),
        Blocker::InFlight { claim } => json!({"kind": "in_flight", "claim": claim.to_string()}),
        Blocker::Fit { reason } => json!({"kind": "fit", "fit": reason}),
        _ => json!({"kind": "other"}),
    }
}
