//! Lifecycle of requests: decisions, phases, expiry, rate limit and metrics.

use std::num::NonZeroU32;
use std::time::Duration;

use dra_attrs::{Gate, GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use poolstatus::lifecycle::{RateLimiter, RequestController, RequestDecision, RequestPhase, TtlError};
use poolstatus::metrics::{Metric, MetricIncrements};
use poolstatus::{InputKind, RequestOutcome, StatusRequest, kep};
use proptest::prelude::*;
use serde_json::json;

use crate::cluster::{DRIVER, claim, node, now, ready, report, slice};

fn on() -> GateSet {
    GateSet::NONE.with(Gate::ResourcePoolStatus)
}

const OFF: GateSet = GateSet::NONE;

fn after(seconds: i64) -> Timestamp {
    now().checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

fn kep_request(uid: &str) -> kep::ResourcePoolStatusRequest {
    let mut request = kep::ResourcePoolStatusRequest::default();
    request.metadata.name = Some("check".to_owned());
    request.metadata.uid = Some(uid.to_owned());
    request.metadata.creation_timestamp = Some(Time(now()));
    DRIVER.clone_into(&mut request.spec.driver);
    request
}

fn shipped_request(uid: &str) -> v1alpha3::ResourcePoolStatusRequest {
    let request = kep_request(uid);
    let spec = v1alpha3::ResourcePoolStatusRequestSpec { driver: DRIVER.to_owned(), ..Default::default() };
    v1alpha3::ResourcePoolStatusRequest { metadata: request.metadata, spec, status: None }
}

/// Creates a controller that has synced every list.
fn controller(api_server: GateSet, manager: GateSet) -> RequestController {
    let mut controller = RequestController::new(api_server, manager);
    for input in [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules] {
        controller.mark_synced(input);
    }
    controller
}

#[test]
fn processed_exactly_once() {
    // req: 5677-REQ-5, 5677-REQ-8
    let mut controller = controller(on(), on());
    let (mut kep, mut shipped) = (kep_request("1"), shipped_request("2"));
    let report = report(&[node("node-1", 1)], &[]);
    let mut writes = 0;
    for _ in 0..3 {
        if controller.decide((&kep).into()) == RequestDecision::Process {
            writes += 1;
            controller.mark_written("1");
        }
        if controller.decide((&shipped).into()) == RequestDecision::Process {
            writes += 1;
            controller.mark_written("2");
        }
    }
    assert_eq!(writes, 2, "the watch need not have shown the status yet");

    // Processed requests are recognised by their status, so that a restarted controller knows them too.
    let fresh = self::controller(on(), on());
    kep.status = report.to_kep();
    shipped.status = Some(ready(&report));
    assert_eq!(fresh.decide((&kep).into()), RequestDecision::Processed);
    assert_eq!(fresh.decide((&shipped).into()), RequestDecision::Processed);
    kep.status.observation_time = None;
    assert_eq!(fresh.decide((&kep).into()), RequestDecision::Process, "the mark is the time");
    shipped.status = Some(v1alpha3::ResourcePoolStatusRequestStatus::default());
    assert_eq!(
        fresh.decide((&shipped).into()),
        RequestDecision::Processed,
        "the mark is the status, even an empty one"
    );
}

#[test]
fn an_answer_stays_when_a_claim_comes_later() {
    // req: 5677-REQ-7
    let (controller, slices) = (controller(on(), on()), [node("node-1", 4)]);
    let mut requests = vec![kep_request("1")];
    let sync = |requests: &mut [kep::ResourcePoolStatusRequest], claims: &[ResourceClaim]| {
        for request in requests {
            if controller.decide((&*request).into()) == RequestDecision::Process {
                request.status = report(&slices, claims).to_kep();
            }
        }
    };
    sync(&mut requests, &[]);
    requests.push(kep_request("2"));
    sync(&mut requests, &[claim("c", &["node-1/gpu-0"])]);
    let pools = requests.iter().map(|request| &request.status.pools[0]);
    let counts: Vec<_> = pools.map(|pool| (pool.allocated_devices, pool.available_devices)).collect();
    assert_eq!(counts, [(0, 4), (1, 3)]);
}

#[test]
fn made_again_under_the_same_name() {
    // req: 5677-REQ-6
    let mut controller = controller(on(), on());
    controller.mark_written("1");
    assert_eq!(controller.decide((&kep_request("1")).into()), RequestDecision::Processed);
    assert_eq!(controller.decide((&kep_request("2")).into()), RequestDecision::Process);
    controller.forget("1");
    assert_eq!(
        controller.decide((&kep_request("1")).into()),
        RequestDecision::Process,
        "nothing is remembered for ever"
    );
}

#[test]
fn no_partial_answer() {
    // req: 5677-REQ-9
    let request = kep_request("1");
    let mut controller = RequestController::new(on(), on().with(Gate::DeviceTaintRules));
    for input in [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules] {
        assert_eq!(controller.decide((&request).into()), RequestDecision::NotSynced(input));
        controller.mark_synced(input);
    }
    assert_eq!(controller.decide((&request).into()), RequestDecision::Process);
    let mut controller = RequestController::new(on(), on());
    for input in [InputKind::ResourceClaims, InputKind::ResourceSlices] {
        controller.mark_synced(input);
    }
    assert_eq!(
        controller.decide((&request).into()),
        RequestDecision::Process,
        "rules are not waited for while their gate is off"
    );
}

#[test]
fn the_gate_in_two_components() {
    // req: 5677-GATE-1
    assert_eq!(Gate::ResourcePoolStatus.name(Profile::V1_37), "DRAResourcePoolStatus");
    assert!(!GateSet::of(Profile::V1_37).has(Gate::ResourcePoolStatus), "alpha");
    let request = kep_request("1");
    let rows = [
        (OFF, OFF, RequestDecision::Inaccessible),
        (OFF, on(), RequestDecision::Inaccessible),
        (on(), OFF, RequestDecision::NotReady),
        (on(), on(), RequestDecision::Process),
    ];
    for (api_server, manager, expected) in rows {
        assert_eq!(controller(api_server, manager).decide((&request).into()), expected, "{api_server:?} {manager:?}");
    }
    assert_eq!(
        RequestPhase::from_request((&request).into(), now()),
        RequestPhase::Pending { waiting: Some(Duration::ZERO) }
    );
    assert_eq!(request.status, kep::Status::default());
}

#[test]
fn off_and_on_again() {
    // req: 5677-GATE-2
    let (pending, mut done) = (kep_request("1"), kep_request("2"));
    done.status = report(&[], &[]).to_kep();
    let decisions = |gates| [&pending, &done].map(|request| controller(gates, gates).decide(request.into()));
    assert_eq!(decisions(OFF), [RequestDecision::Inaccessible, RequestDecision::Inaccessible]);
    assert_eq!(
        decisions(on()),
        [RequestDecision::Process, RequestDecision::Processed],
        "answers are not computed again"
    );
}

#[test]
fn phases() {
    // req: 5677-STATE-1
    let mut kep = kep_request("1");
    let pending = |seconds| RequestPhase::Pending { waiting: Some(Duration::from_secs(seconds)) };
    assert_eq!(RequestPhase::from_request((&kep).into(), after(90)), pending(90));
    assert_eq!(RequestPhase::from_request((&kep).into(), after(-90)), pending(0), "clocks differ");
    kep.metadata.creation_timestamp = None;
    assert_eq!(RequestPhase::from_request((&kep).into(), after(90)), RequestPhase::Pending { waiting: None });
    kep.status = report(&[], &[]).to_kep();
    assert_eq!(RequestPhase::from_request((&kep).into(), now()), RequestPhase::Complete);

    let mut shipped = shipped_request("1");
    assert_eq!(RequestPhase::from_request((&shipped).into(), after(5)), pending(5));
    shipped.status = Some(ready(&report(&[], &[])));
    assert_eq!(RequestPhase::from_request((&shipped).into(), now()), RequestPhase::Complete);
    shipped.status = RequestOutcome::from_list_error(InputKind::ResourceSlices, "gone", now()).status().cloned();
    assert_eq!(RequestPhase::from_request((&shipped).into(), now()), RequestPhase::Failed);
}

#[test]
fn seconds_to_live() {
    // req: 5677-TTL-1
    let rows = [
        (Some(10), Some(now()), after(10), false),
        (Some(10), Some(now()), after(11), true),
        (Some(0), Some(now()), now(), false),
        (Some(0), Some(now()), after(1), true),
        (Some(10), None, after(1_000_000), false),
        (None, Some(now()), after(1_000_000), false),
        (Some(i64::MAX), Some(now()), Timestamp::MAX, false),
    ];
    for (ttl, completion, at, expected) in rows {
        let mut request = kep_request("1");
        (request.spec.ttl_seconds_after_complete, request.status.observation_time) = (ttl, completion.map(Time));
        assert_eq!(request.is_ttl_expired(at), Ok(expected), "{ttl:?} {at}");
    }
    let mut request = kep_request("1");
    request.spec.ttl_seconds_after_complete = Some(-1);
    let refused: Result<bool, TtlError> = request.is_ttl_expired(now());
    assert_eq!(refused.unwrap_err().to_string(), "ttlSecondsAfterComplete -1: must not be negative");
}

#[test]
fn the_sweep_of_kubernetes() {
    // req: 5677-TTL-1
    let expired = |request: &v1alpha3::ResourcePoolStatusRequest, seconds| {
        StatusRequest::from(request).is_retention_expired(after(seconds))
    };
    let mut request = shipped_request("1");
    assert!(!expired(&request, 86_400) && expired(&request, 86_401));

    request.status = Some(v1alpha3::ResourcePoolStatusRequestStatus::default());
    assert!(!expired(&request, 3_600) && expired(&request, 3_601), "from its creation, without a condition");
    let mut later = ready(&report(&[], &[]));
    later.conditions.as_mut().unwrap()[0].last_transition_time = Time(after(600));
    request.status = Some(later);
    assert!(!expired(&request, 4_200) && expired(&request, 4_201), "from its completion");

    request.status = None;
    request.metadata.creation_timestamp = None;
    assert!(!expired(&request, 1_000_000), "without a time it stays");
}

#[test]
fn the_age_of_an_answer() {
    // req: 5677-CALC-14
    let age = |observed, now| kep::Status { observation_time: Some(Time(observed)), ..Default::default() }.age(now);
    assert_eq!(age(now(), after(61)), Some(Duration::from_secs(61)));
    assert_eq!(age(now(), now()), Some(Duration::ZERO));
    assert_eq!(age(after(1), now()), Some(Duration::ZERO));
    assert!(age(Timestamp::MIN, Timestamp::MAX) > Some(Duration::from_secs(1)));
    assert_eq!(kep::Status::default().age(now()), None, "not answered");
}

#[test]
fn a_bucket_for_each_user() {
    // req: 5677-RATE-1
    let mut limiter = RateLimiter::new(NonZeroU32::new(3).unwrap(), Duration::from_secs(10));
    let mut take = |user: &str, seconds| limiter.take(user, after(seconds)).map(|wait| wait.as_secs());
    for _ in 0..3 {
        assert_eq!(take("alice", 0), None);
    }
    assert_eq!(take("alice", 0), Some(10));
    assert_eq!(take("alice", 4), Some(6), "a refusal costs nothing");
    assert_eq!(take("bob", 4), None, "users do not share");
    assert_eq!(take("alice", 10), None);
    assert_eq!(take("alice", 10), Some(10));
    assert_eq!((take("alice", 30), take("alice", 30), take("alice", 30)), (None, None, Some(10)));
    assert_eq!(take("alice", -100), Some(140), "a clock that goes back gives nothing away");
    limiter.forget_idle(after(13));
    assert_eq!(limiter.len(), 2);
    limiter.forget_idle(after(14));
    assert_eq!(limiter.len(), 1, "the bucket of bob is full again");
    limiter.forget_idle(after(1_000));
    assert!(limiter.is_empty());
}

#[test]
fn tokens_that_never_come_back() {
    // req: 5677-RATE-1
    for refill in [Duration::from_secs(3_000 * 365 * 86_400), Duration::from_secs(u64::MAX / 2), Duration::MAX] {
        let mut limiter = RateLimiter::new(NonZeroU32::new(3).unwrap(), refill);
        let granted: Vec<bool> = (0..5).map(|_| limiter.take("alice", now()).is_none()).collect();
        assert_eq!(granted, [true, true, true, false, false], "{refill:?}");
        assert_eq!(limiter.take("alice", now()), Some(refill));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// In any span of time at most the burst and the refilled tokens are granted, and after the wait there is a token.
    #[test]
    fn never_more_than_burst_and_refill(
        burst in 1_u32..5, refill in 0_u64..20, gaps in prop::collection::vec(0_i64..30, 1..40)
    ) {
        // req: 5677-RATE-1
        let mut limiter = RateLimiter::new(NonZeroU32::new(burst).unwrap(), Duration::from_secs(refill));
        let (mut time, mut granted) = (0, Vec::new());
        for gap in gaps {
            time += gap;
            match limiter.take("user", after(time)) {
                None => granted.push(time),
                Some(wait) => {
                    let wait = i64::try_from(wait.as_secs()).unwrap();
                    prop_assert!(wait > 0);
                    prop_assert!(limiter.clone().take("user", after(time + wait - 1)).is_some());
                    prop_assert!(limiter.clone().take("user", after(time + wait)).is_none());
                }
            }
        }
        for (index, first) in granted.iter().enumerate() {
            for (number, last) in granted[index..].iter().enumerate() {
                let room = u64::try_from(last - first).unwrap() / refill.max(1) + u64::from(burst);
                prop_assert!(refill == 0 || u64::try_from(number + 1).unwrap() <= room);
            }
        }
    }
}

#[test]
fn what_the_metrics_need() {
    // req: 5677-METRIC-1, 5677-METRIC-2
    let report_ = report(&[node("node-1", 1)], &[]);
    for profile in [Profile::Kep, Profile::V1_37] {
        let observed = serde_json::to_value(report_.metric_increments(profile)).unwrap();
        assert_eq!(observed, json!({"processed": 1, "errors": 0, "driver": DRIVER}));
    }
    let missing = report(&[slice("s", "p", json!({"pool": {"resourceSliceCount": 2}}))], &[]);
    assert_eq!(
        missing.metric_increments(Profile::V1_37).processed,
        0,
        "nothing is counted while a request is held back"
    );
    for (profile, listing, writing) in [(Profile::Kep, [0, 1], [0, 1]), (Profile::V1_37, [1, 0], [1, 1])] {
        let unlisted = MetricIncrements::from_list_error(DRIVER, profile);
        let unwritten = report_.metric_increments(profile).with_failed_write(profile);
        assert_eq!(([unlisted.processed, unlisted.errors], unlisted.driver.as_str()), (listing, DRIVER));
        assert_eq!(([unwritten.processed, unwritten.errors], unwritten.driver.as_str()), (writing, DRIVER));
    }
    assert_eq!(Metric::DRIVER_LABEL, "driver_name");
    let names = [Metric::Duration, Metric::Errors, Metric::Processed].map(|metric| metric.name(Profile::Kep));
    assert_eq!(
        names,
        [
            "resourcepoolstatus_request_processing_duration_seconds",
            "resourcepoolstatus_request_processing_errors_total",
            "resourcepoolstatus_requests_processed_total",
        ]
    );
    let prefix = "resourcepoolstatusrequest_controller_request";
    assert!(
        [Metric::Duration, Metric::Errors, Metric::Processed]
            .iter()
            .all(|metric| metric.name(Profile::V1_37).starts_with(prefix))
    );
}

#[test]
fn the_objective() {
    // req: 5677-METRIC-3
    let (fast, slow) = (Metric::OBJECTIVE, Metric::OBJECTIVE + Duration::from_nanos(1));
    let mix = |fasts, slows| Metric::is_objective_met(&[vec![fast; fasts], vec![slow; slows]].concat());
    assert_eq!(Metric::OBJECTIVE, Duration::from_secs(30));
    assert!(mix(0, 0) && mix(1, 0) && mix(99, 1) && mix(198, 2) && mix(1000, 10));
    assert!(!mix(0, 1) && !mix(98, 1) && !mix(98, 2) && !mix(197, 2));
}

#[test]
fn processing_yields_a_status_and_numbers_only() {
    // req: 5677-METRIC-4
    let report = report(&[node("node-1", 1)], &[]);
    let RequestOutcome::Ready(status) = report.to_v1alpha3() else { panic!("not ready") };
    let written = serde_json::to_value((report.to_kep(), status, report.metric_increments(Profile::Kep))).unwrap();
    assert!(!written.to_string().to_lowercase().contains("event"));
    let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&written[1]), ["conditions", "poolCount", "pools"]);
    assert_eq!(keys(&written[2]), ["driver", "errors", "processed"]);
}

#[test]
fn both_forms_of_a_request_say_the_same() {
    let (kep, shipped) = (kep_request("1"), shipped_request("1"));
    let (kep, shipped) = (StatusRequest::from(&kep), StatusRequest::from(&shipped));
    assert_eq!(kep.metadata(), shipped.metadata());
    assert_eq!((kep.profile(), shipped.profile()), (Profile::Kep, Profile::V1_37));
    assert_eq!((kep.is_processed(), shipped.is_processed()), (false, false));
}

#[test]
fn the_sweep_begins_with_the_first_condition_that_ends_a_request() {
    let condition = |of_type: &str, seconds| json!({"type": of_type, "status": "True", "reason": "R", "message": "", "lastTransitionTime": after(seconds)});
    for conditions in [
        json!([condition("Failed", 600)]),
        json!([condition("Other", 900), condition("Failed", 600), condition("Complete", 1_200)]),
        json!([condition("Complete", 600), condition("Failed", 300)]),
    ] {
        let mut request = shipped_request("1");
        request.status = serde_json::from_value(json!({"poolCount": 0, "conditions": conditions})).unwrap();
        let expired = |seconds| StatusRequest::from(&request).is_retention_expired(after(seconds));
        assert!(!expired(4_200) && expired(4_201), "{conditions}");
    }
}

#[test]
fn the_names_of_the_metrics_that_ship() {
    let names = [Metric::Duration, Metric::Errors, Metric::Processed].map(|metric| metric.name(Profile::V1_37));
    assert_eq!(
        names,
        [
            "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
            "resourcepoolstatusrequest_controller_request_processing_errors_total",
            "resourcepoolstatusrequest_controller_requests_processed_total",
        ]
    );
}
