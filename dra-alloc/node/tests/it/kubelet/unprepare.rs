//! Tests of unprepare, and of pods that no longer exist.

use dra_attrs::Profile;
use dra_node::kubelet::{Operation, PrepareError};
use serde_json::json;

use super::world::{BOTH, GPU, NIC, World, claim, pod};

#[test]
fn a_driver_that_is_missing_or_fails_keeps_the_claim() {
    // req: 5945-KUBELET-19, 5945-KUBELET-10
    let object = claim("c", &[(GPU, json!(false))]);
    let mut world = World::new(Profile::Kep, &[GPU]);
    world.prepare(&pod("p", &["c"]), &[object]).unwrap();
    world.registered.clear();
    let missing = world.unprepare(&pod("p", &["c"])).unwrap_err();
    assert_eq!(missing.to_string(), "unprepare dynamic resources: DRA driver gpu.example.com is not registered");
    world.registered.insert(GPU.to_owned());
    world.failing.insert(GPU.to_owned());
    let failing = world.unprepare(&pod("p", &["c"])).unwrap_err();
    assert_eq!(
        failing.to_string(),
        "unprepare dynamic resources: NodeUnprepareResources: rpc error: code = Unavailable"
    );
    assert!(world.cache.may_need_unprepare("p-uid") && world.file.contains("c-claim"));
    world.failing.clear();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert!(world.cache.claims().is_empty() && !world.file.contains("c-claim"));
}

#[test]
fn responses_that_are_no_success() {
    let rows = [
        (json!({"zzz": null}), "NodeUnprepareResources returned result for unknown claim UID zzz"),
        (json!({"c-claim": "busy"}), "NodeUnprepareResources failed for ResourceClaim c: busy"),
        (json!({}), "NodeUnprepareResources skipped 1 ResourceClaims"),
    ];
    for (answers, expected) in rows {
        let mut world = World::new(Profile::V1_37, &[GPU]);
        world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
        let mut plan = world.cache.plan_unprepare(&pod("p", &["c"]), |_| true, world.settings).unwrap();
        let answer = |(uid, error): (&String, &serde_json::Value)| {
            (uid.clone(), error.as_str().map_or(Ok(()), |error| Err(error.to_owned())))
        };
        let outcome = Ok(answers.as_object().unwrap().iter().map(answer).collect());
        let error = world.cache.apply_unprepare(&mut plan, GPU, outcome).unwrap_err();
        assert_eq!(error.to_string(), format!("unprepare dynamic resources: {expected}"));
        assert!(world.cache.finish_unprepare(plan).is_err());
        assert!(world.cache.may_need_unprepare("p-uid"));
    }
}

#[test]
fn a_claim_of_another_pod_is_left_alone() {
    // A kubelet that only counts the pods of a claim would take it away from a running pod: this pod names the claim,
    // but was never added to it.
    let object = claim("shared", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("q", &["shared"]), &[object]).unwrap();
    world.unprepare(&pod("p", &["shared"])).unwrap();
    assert!(world.called(Operation::Unprepare).is_empty());
    assert!(world.cache.may_need_unprepare("q-uid"));
}

#[test]
fn a_claim_that_was_never_prepared_is_unprepared_all_the_same() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.failing.insert(GPU.to_owned());
    world.prepare(&pod("p", &["c"]), &[object]).unwrap_err();
    world.failing.clear();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert_eq!(world.called(Operation::Unprepare)[GPU], [["c-claim"]]);
}

#[test]
fn a_claim_that_is_being_unprepared_is_taken_up_by_no_pod() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    let mut plan = world.cache.plan_unprepare(&pod("p", &["c"]), |_| true, world.settings).unwrap();
    let refused = world.prepare(&pod("q", &["c"]), std::slice::from_ref(&object)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "prepare dynamic resources: ResourceClaim c: still being unprepared for another pod"
    );
    world.cache.apply_unprepare(&mut plan, GPU, Ok([("c-claim".to_owned(), Ok(()))].into())).unwrap();
    world.cache.finish_unprepare(plan).unwrap();
    assert!(world.cache.claims().is_empty());
    world.calls.clear();
    world.prepare(&pod("q", &["c"]), &[object]).unwrap();
    assert_eq!(world.called(Operation::Prepare)[GPU], [["c-claim"]]);
}

#[test]
fn a_claim_whose_unprepare_has_failed_waits_for_its_repetition() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world.failing.insert(GPU.to_owned());
    world.unprepare(&pod("p", &["c"])).unwrap_err();
    world.failing.clear();
    assert!(matches!(
        world.prepare(&pod("q", &["c"]), std::slice::from_ref(&object)),
        Err(PrepareError::Unpreparing { claim }) if claim == "c"
    ));
    world.unprepare(&pod("p", &["c"])).unwrap();
    world.prepare(&pod("q", &["c"]), &[object]).unwrap();
}

#[test]
fn an_unprepare_that_can_call_nobody_keeps_no_other_pod_out() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world.registered.clear();
    world.unprepare(&pod("p", &["c"])).unwrap_err();
    world.registered.insert(GPU.to_owned());
    world.prepare(&pod("q", &["c"]), &[object]).unwrap();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert!(world.called(Operation::Unprepare).is_empty() && world.cache.may_need_unprepare("q-uid"));
}

#[test]
fn a_claim_that_has_come_back_is_not_ended_by_an_older_plan() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    let mut older = world.cache.plan_unprepare(&pod("p", &["c"]), |_| true, world.settings).unwrap();
    world.unprepare(&pod("p", &["c"])).unwrap();
    world.prepare(&pod("q", &["c"]), &[object]).unwrap();
    world.cache.apply_unprepare(&mut older, GPU, Ok([("c-claim".to_owned(), Ok(()))].into())).unwrap();
    world.cache.finish_unprepare(older).unwrap();
    assert!(world.cache.may_need_unprepare("q-uid"));
}

#[test]
fn pods_that_are_gone() {
    for profile in BOTH {
        let mut world = World::new(profile, &[GPU]);
        let objects =
            [claim("a", &[(GPU, json!(null))]), claim("b", &[(GPU, json!(true))]), claim("c", &[(GPU, json!(null))])];
        world.prepare(&pod("p", &["a", "b", "c"]), &objects).unwrap();
        world.prepare(&pod("q", &["c"]), &objects).unwrap();
        world = world.restart().gate_off();

        assert!(
            world
                .cache
                .plan_orphans(&["p-uid".to_owned(), "q-uid".to_owned()].into(), |_| true, world.settings)
                .is_empty()
        );
        let orphans = world.cache.plan_orphans(&["q-uid".to_owned()].into(), |_| true, world.settings);
        let [(pod_uid, plan)] = <[_; 1]>::try_from(orphans).unwrap();
        assert_eq!(pod_uid, "p-uid");
        let mut plan = plan.unwrap();
        assert_eq!(plan.calls()[GPU].iter().map(|claim| claim.key.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(plan.skipped().iter().map(|skip| skip.claim_uid.as_str()).collect::<Vec<_>>(), ["b-claim"]);
        world.cache.apply_unprepare(&mut plan, GPU, Ok([("a-claim".to_owned(), Ok(()))].into())).unwrap();
        world.cache.finish_unprepare(plan).unwrap();
        assert_eq!(world.cache.claims().keys().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["c"]);
        assert!(world.cache.take_checkpoint(profile).is_some());
    }
}

#[test]
fn one_pod_that_has_to_wait_does_not_hold_up_another() {
    let mut world = World::new(Profile::V1_37, &[GPU, NIC]);
    world.prepare(&pod("p", &["a"]), &[claim("a", &[(GPU, json!(null))])]).unwrap();
    world.prepare(&pod("q", &["b"]), &[claim("b", &[(NIC, json!(null))])]).unwrap();
    let orphans = world.cache.plan_orphans(&[].into(), |driver| driver == NIC, world.settings);
    assert_eq!(
        orphans[0].1.as_ref().unwrap_err().to_string(),
        "unprepare dynamic resources: DRA driver gpu.example.com is not registered"
    );
    assert!(orphans[1].1.as_ref().unwrap().calls().contains_key(NIC));
}

#[test]
fn claims_in_use() {
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["a"]), &[claim("a", &[(GPU, json!(null)), (NIC, json!(["*"]))])]).unwrap();
    world.prepare(&pod("q", &["b"]), &[claim("b", &[(GPU, json!(["*"]))])]).unwrap();
    world.failing.insert(GPU.to_owned());
    world.prepare(&pod("q", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap_err();
    assert_eq!(world.cache.in_use(), [("<any>", 2), (GPU, 2), (NIC, 1)].into());
}

#[test]
fn names_in_the_spec_count_only_for_a_pod_that_nothing_remembers() {
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
    let unmade = |name: &str| {
        let mut pod = pod(name, &["c"]);
        let entry = &mut pod.spec.as_mut().unwrap().resource_claims.as_mut().unwrap()[0];
        (entry.resource_claim_name, entry.resource_claim_template_name) = (None, Some("t".to_owned()));
        pod
    };
    let refused = world.unprepare(&unmade("q")).unwrap_err();
    assert_eq!(refused.to_string(), r#"unprepare dynamic resources: pod "ns/q": ResourceClaim not created yet"#);
    world.unprepare(&unmade("p")).unwrap();
    assert!(world.cache.claims().is_empty());
}

#[test]
fn an_entry_that_no_pod_holds_goes_with_a_pod_that_names_it() {
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
    let held = |text: &str| text.replace(r#"\"PodUIDs\":{\"p-uid\":{}}"#, r#"\"PodUIDs\":{}"#);
    let data: serde_json::Value = serde_json::from_str(&world.file).unwrap();
    let data = held(&data["Data"].to_string());
    let data: String = serde_json::from_str(&data).unwrap();
    let file = json!({"Data": data, "Checksum": crc32fast::hash(data.as_bytes())});
    world.cache = dra_node::kubelet::ClaimCache::from_checkpoint(file.to_string().as_bytes()).unwrap();
    assert!(world.cache.claims().values().all(|info| info.pods.is_empty()));
    world.unprepare(&pod("q", &["c"])).unwrap();
    assert_eq!(world.called(Operation::Unprepare).len(), 1);
    assert!(world.cache.claims().is_empty());
}
