//! Binding conditions: reports, and the wait of a binding.

use dra_alloc::Profile;
use dra_alloc::pods::{BindStep, BindingReport, BindingState, NodeFilterError, PodOptions, PreBind, StatusCode};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, from_value, json};

use super::world::{NOW, World, allocated, pod};

/// A device with the conditions that its driver reports, if it reports any.
type Device<'d> = (&'d str, Option<&'d [(&'d str, &'d str)]>);

fn with_devices(devices: &[Device<'_>]) -> ResourceClaim {
    let result = |name: &str| {
        json!({"request": "r", "driver": "d.example.com", "pool": "n1", "device": name,
            "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]})
    };
    let results: Vec<Value> = devices.iter().map(|(name, _)| result(name)).collect();
    let status = |(name, conditions): &Device<'_>| {
        let conditions = (*conditions)?.iter().map(|(kind, value)| {
            json!({"type": kind, "status": value, "reason": "R", "message": "m\"", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        });
        let conditions: Vec<Value> = conditions.collect();
        Some(json!({"driver": "d.example.com", "pool": "n1", "device": name, "conditions": conditions}))
    };
    let statuses: Vec<Value> = devices.iter().filter_map(status).collect();
    let mut claim = allocated("c", "n1", "a", &["p"]);
    let status = claim.status.as_mut().unwrap();
    status.devices = from_value(json!(statuses)).unwrap();
    status.allocation.as_mut().unwrap().devices = from_value(json!({"results": results})).unwrap();
    status.allocation.as_mut().unwrap().allocation_timestamp = from_value(json!("1970-01-01T00:00:00Z")).unwrap();
    claim
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

#[test]
fn a_device_that_is_not_ready_hides_the_failure_of_a_later_one() {
    let failed: &[(&str, &str)] = &[("failed", "True")];
    let rows: [(&[Device<'_>], &str); 5] = [
        (&[("a", None)], "pending"),
        (&[("a", Some(&[("ready", "Unknown")]))], "pending"),
        (&[("a", Some(&[("ready", "True")]))], "ready"),
        (&[("a", None), ("b", Some(failed))], "pending"),
        (&[("a", Some(&[("ready", "True"), ("failed", "False")])), ("b", Some(failed))], "failed"),
    ];
    for (devices, expected) in rows {
        let report = BindingReport::of_claim(&with_devices(devices), NOW, PodOptions::new(Profile::V1_37));
        let state = match &report.state {
            BindingState::Ready => "ready",
            BindingState::Pending => "pending",
            BindingState::Failed(failure) => {
                assert_eq!(failure.to_string(), r#"device binding failed: claim=c, reason=R, message="m\"""#);
                "failed"
            }
        };
        assert_eq!(state, expected, "{devices:?}");
    }
}

#[test]
fn the_timeout_is_strict_and_needs_binding_conditions() {
    let claim = with_devices(&[("a", None)]);
    let late =
        |claim: &ResourceClaim, now| BindingReport::of_claim(claim, at(now), PodOptions::new(Profile::V1_37)).timed_out;
    assert!(!late(&claim, 600) && late(&claim, 601));
    assert!(!late(&allocated("c", "n1", "a", &[]), 10_000));
}

#[test]
fn a_binding_waits_until_its_devices_are_ready_or_the_time_is_over() {
    let mut world = World::new(1, [with_devices(&[("a", None)])]);
    let mut cycle = world.begin(&pod("p", &["c"], None), None);
    let mut binding = PreBind::default();
    let wait = binding.next(&mut cycle, &mut world.tracker, at(0));
    assert_eq!(wait, BindStep::Wait { claim: "c".into(), until: at(5) });
    let last = binding.next(&mut cycle, &mut world.tracker, at(598));
    assert_eq!(last, BindStep::Wait { claim: "c".into(), until: at(600) });

    let mut over = binding.clone();
    let BindStep::Failed(error) = over.next(&mut cycle, &mut world.tracker, at(600)) else { panic!("still waits") };
    assert_eq!(error.to_string(), "device binding timeout: claim=c");

    world.store(with_devices(&[("a", Some(&[("ready", "True")]))]));
    world.watch();
    assert_eq!(binding.next(&mut cycle, &mut world.tracker, at(599)), BindStep::Done);
}

#[test]
fn a_timeout_that_no_clock_reaches_does_not_overflow() {
    let options = PodOptions::new(Profile::V1_37).with_binding_timeout(SignedDuration::MAX);
    let report = BindingReport::of_claim(&with_devices(&[("a", None)]), Timestamp::MAX, options);
    assert!(!report.timed_out);
}

#[test]
fn a_failed_binding_has_the_text_of_its_release() {
    let failed: &[(&str, &str)] = &[("failed", "True")];
    let text = |profile: Profile, devices: &[Device<'_>]| {
        let mut world = World::new(1, [with_devices(devices)]);
        world.options = PodOptions::new(Component::new(profile, world.options.scheduler().gates()));
        let mut cycle = world.begin(&pod("p", &["c"], None), None);
        let mut binding = PreBind::default();
        binding.next(&mut cycle, &mut world.tracker, at(0));
        match binding.next(&mut cycle, &mut world.tracker, at(600)) {
            BindStep::Failed(error) => error.to_string(),
            step => panic!("{step:?}"),
        }
    };
    let rows = [
        (Profile::V1_35, r#"claim c binding failed: reason=R, message="m\"""#, "device binding timeout"),
        (
            Profile::V1_36,
            r#"device binding failed: claim=c, reason=R, message="m\"""#,
            "device binding timeout: claim=c",
        ),
    ];
    for (profile, failure, timeout) in rows {
        assert_eq!(text(profile, &[("a", Some(failed))]), failure);
        assert_eq!(text(profile, &[("a", None)]), timeout);
    }
}

#[test]
fn a_node_that_takes_too_long_ends_the_attempt_in_later_releases() {
    let code = |profile: Profile| NodeFilterError::TimedOut { node: "n".to_owned(), profile }.code();
    let codes = [Profile::V1_34, Profile::V1_35, Profile::V1_36, Profile::V1_37].map(code);
    assert_eq!(codes, [StatusCode::Unschedulable, StatusCode::Unschedulable, StatusCode::Error, StatusCode::Error]);
}
