//! Stored state: its JSON form and its version.

use k8s_openapi::jiff::SignedDuration;
use readiness::network::{Aggregate, HoldDown};
use readiness::{NodeState, Policy, StoredStateError};
use serde_json::{Value, from_value, json, to_value};

use super::world::{A, B, World, at, gate_a, gate_b, stored};

/// Returns the state of a node with a gate in each form: released, before a boot, with a preexisting timeout.
fn eventful() -> NodeState {
    let mut world = World::new(Policy::hardened(), &[gate_a(), gate_b()]).ready(0);
    world.report(A, "False", "Starting", 0);
    world.run(0);
    world.look(3);
    world.report("c.example/Ready", "Unknown", "TimeoutExceeded", 4);
    world.report(B, "True", "Ok", 4);
    world.run(4);
    world.boot("boot-2");
    world.run(5);
    world.state
}

#[test]
fn the_version_is_written_first() {
    let text = serde_json::to_string(&NodeState::default()).unwrap();
    assert!(text.starts_with(r#"{"version":1,"uid":"#), "{text}");
    assert!(!text.contains("ungated"), "what is empty and seldom there is not written: {text}");
    let text = serde_json::to_string(&HoldDown::new(SignedDuration::from_secs(10))).unwrap();
    assert_eq!(text, r#"{"version":1,"seconds":10,"trueSince":null,"flaps":0}"#);
}

#[test]
fn state_reads_back_as_it_was() {
    let state = eventful();
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(NodeState::from_json(&text).unwrap(), state);
    assert_eq!(serde_json::from_str::<NodeState>(&text).unwrap(), state);
    assert_eq!(from_value::<NodeState>(json!({"version": 1})).unwrap(), NodeState::default(), "missing fields");
    let mut hold_down = HoldDown::new(SignedDuration::from_secs(1));
    hold_down.observe(&Aggregate::True, at(0));
    hold_down.observe(&Aggregate::True, at(1));
    let text = serde_json::to_string(&hold_down).unwrap();
    assert_eq!(HoldDown::from_json(&text).unwrap(), hold_down);
}

#[test]
fn every_key_is_camel_case() {
    fn check(value: &Value) {
        for (key, inner) in value.as_object().into_iter().flatten() {
            assert!(key.contains('/') || key.chars().all(|c| c.is_ascii_alphanumeric()), "{key}");
            check(inner);
        }
    }
    let state = to_value(eventful()).unwrap();
    check(&state);
    let keys: Vec<&str> = state.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(
        ["version", "bootId", "kubeletInstance", "ownedTaints", "ungated", "isWarm"]
            .iter()
            .all(|key| keys.contains(key))
    );
    let gate = &state["gates"][A];
    assert_eq!(gate["phase"], "waiting");
    assert!(gate["timerStartedAt"].is_string() && gate["beforeBoot"]["lastHeartbeatTime"].is_string(), "{gate}");
}

#[test]
fn an_unknown_version_is_a_typed_error() {
    for other in [json!(0), json!(2), json!("1"), json!(null), json!(1.5)] {
        let text = json!({"version": other, "gates": "of another form"}).to_string();
        let error = NodeState::from_json(&text).unwrap_err();
        assert!(
            matches!(&error, StoredStateError::UnknownVersion { found, known: 1, .. } if *found == other),
            "{error}"
        );
        assert_eq!(error.to_string(), format!("stored state has version {other}; this release reads version 1"));
        assert_eq!(serde_json::from_str::<NodeState>(&text).unwrap_err().to_string(), error.to_string());
        assert!(matches!(HoldDown::from_json(&text), Err(StoredStateError::UnknownVersion { .. })));
        assert_eq!(serde_json::from_str::<HoldDown>(&text).unwrap_err().to_string(), error.to_string());
    }
    let error = NodeState::from_json("{}").unwrap_err();
    assert!(matches!(error, StoredStateError::MissingVersion { known: 1, .. }));
    assert_eq!(error.to_string(), "stored state has no field `version`; this release reads version 1");
    assert_eq!(serde_json::from_str::<NodeState>("{}").unwrap_err().to_string(), error.to_string());
    assert!(matches!(HoldDown::from_json("{}"), Err(StoredStateError::MissingVersion { .. })));
    for text in ["[]", "1"] {
        assert!(matches!(NodeState::from_json(text), Err(StoredStateError::MissingVersion { .. })), "{text}");
    }
    for text in ["", r#"{"version": 1, "gates": 1}"#] {
        assert!(matches!(NodeState::from_json(text), Err(StoredStateError::Json(_))), "{text}");
    }
}

#[test]
fn the_identity_of_a_taint_is_key_and_effect() {
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.put_taint(from_value(json!({"key": "a", "value": "other", "effect": "NoSchedule"})).unwrap());
    let taint = json!({"key": "a", "effect": "NoSchedule"});
    let state: NodeState = from_value(json!({"version": 1, "ownedTaints": [taint]})).unwrap();
    assert_eq!(stored(&state, "ownedTaints"), [json!({"key": "a", "effect": "NoSchedule"})]);
    assert!(world.write(&state.shutdown_writes(), 0).is_empty() && world.taints().is_empty());
}
