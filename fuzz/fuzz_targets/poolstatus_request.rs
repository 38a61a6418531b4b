//! Requests in both forms, with any status: nothing panics, a request of a valid spec is a query, a spec may stay as it is, a status is
//! written once, and what has one is not processed again.
#![no_main]

use dra_attrs::{Gate, GateSet, Profile};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use poolstatus::lifecycle::{RequestController, RequestDecision, RequestPhase};
use poolstatus::{Cluster, InputKind, Query, RequestOutcome, StatusRequest, kep, validate_status};

type Input = (kep::ResourcePoolStatusRequest, Vec<ResourcePoolStatusRequest>, Vec<ResourceSlice>, ClusterRole, i64);

fuzz_target!(|text: &[u8]| {
    let Ok((of_kep, of_server, slices, role, second)) = serde_json::from_slice::<Input>(text) else { return };
    let Ok(now) = Timestamp::from_second(second) else { return };
    let _ = (of_kep.is_ttl_expired(now), of_kep.status.age(now));
    follow(StatusRequest::from(&of_kep), now);
    for request in of_server.iter().take(4) {
        follow(StatusRequest::from(request), now);
        let next = of_server.first().unwrap_or(request);
        let _ = StatusRequest::from(request).validate_update(next.into());
        if let Some(status) = &request.status {
            assert!(validate_status(Some(status), status).is_empty(), "a status may stay as it is");
            let _ = validate_status(None, status);
        }
        answer(request, &slices, now);
    }
    let _ = StatusRequest::is_granted_by(&role, "get", "resourceslices");
});

fn controller() -> RequestController {
    let on = GateSet::of(Profile::V1_37).with(Gate::ResourcePoolStatus);
    let mut controller = RequestController::new(on, on);
    [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules]
        .into_iter()
        .for_each(|kind| controller.mark_synced(kind));
    controller
}

fn follow(request: StatusRequest<'_>, now: Timestamp) {
    let is_valid = request.validate(GateSet::all()).is_empty();
    assert!(!is_valid || Query::from_request(request).is_ok());
    assert!(request.validate_update(request).is_empty(), "a spec may stay as it is");
    let is_pending = matches!(RequestPhase::from_request(request, now), RequestPhase::Pending { .. });
    assert_eq!(is_pending, !request.is_processed());
    let _ = request.is_retention_expired(now);
    let mut controller = controller();
    let wanted = if request.is_processed() { RequestDecision::Processed } else { RequestDecision::Process };
    assert_eq!(controller.decide(request), wanted);
    let Some(uid) = request.metadata().uid.as_deref() else { return };
    controller.mark_written(uid);
    assert_eq!(controller.decide(request), RequestDecision::Processed);
    controller.forget(uid);
    assert_eq!(controller.decide(request), wanted);
}

/// A request with an answer, also one of a failure, is processed, and pending no more.
fn answer(request: &ResourcePoolStatusRequest, slices: &[ResourceSlice], now: Timestamp) {
    let Ok(query) = Query::from_request(request.into()) else { return };
    let report = Cluster::new(Profile::V1_37, slices, &[] as &[ResourceClaim]).report(&query, now);
    let outcome = report.to_v1alpha3();
    let failed = RequestOutcome::from_list_error(InputKind::ResourceSlices, query.driver(), now);
    for outcome in [&outcome, &failed] {
        let Some(status) = outcome.status() else { continue };
        let mut answered = request.clone();
        answered.status = Some(status.clone());
        assert!(StatusRequest::from(&answered).is_processed());
        let phase = RequestPhase::from_request((&answered).into(), now);
        assert!(!matches!(phase, RequestPhase::Pending { .. }));
    }
}
