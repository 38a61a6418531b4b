//! Tests of node declared features.

use dra_attrs::{Component, Gate, GateSet, Profile, Version};
use dra_device::skip::SkipField;
use dra_node::declared_features::{CandidateNodes, DeclaredFeature, Stage};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, from_value, json};

const NAME: &str = "DraOptionalNodePreparation";
const GATE: &str = "DRAOptionalNodePreparation";

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn pod(claims: &[&str]) -> Pod {
    let entries: Vec<Value> = claims.iter().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
    from_value(
        json!({"metadata": {"namespace": "ns", "name": "p"}, "spec": {"containers": [], "resourceClaims": entries}}),
    )
    .unwrap()
}

fn claim(name: &str, devices: &[Value]) -> ResourceClaim {
    let results: Vec<Value> = devices
        .iter()
        .map(|skip| json!({"request": "r", "driver": "d", "pool": "p", "device": "x", "skipNodeOperations": skip}))
        .collect();
    SkipField::read(json!({"metadata": {"namespace": "ns", "name": name}, "spec": {},
        "status": {"allocation": {"devices": {"results": results}}}}))
    .unwrap()
}

fn node(name: &str, declared: &[&str]) -> Node {
    from_value(json!({"metadata": {"name": name}, "status": {"declaredFeatures": declared}})).unwrap()
}

fn required(profile: Profile, pod: &Pod, claims: &[ResourceClaim]) -> Vec<&'static str> {
    DeclaredFeature::new(profile).required_by(pod, claims, &version("1.37.0")).into_iter().collect()
}

#[test]
fn a_node_declares_the_feature_if_and_only_if_its_gate_is_on() {
    // req: 5945-NDF-1, 5945-NDF-5
    for (profile, name) in [(Profile::Kep, NAME), (Profile::V1_37, "DRAOptionalNodeOperations")] {
        let (off, feature) = (Component::of(profile), DeclaredFeature::new(profile));
        assert_eq!(
            feature.declared_by(
                Component::new(off.profile(), off.gates().with(Gate::OptionalNodeOperations)),
                &version("1.37.0")
            ),
            Some(name)
        );
        assert_eq!(feature.declared_by(off, &version("1.37.0")), None);
    }
    assert_eq!(Gate::OptionalNodeOperations.name(Profile::Kep), GATE);
    assert_eq!(DeclaredFeature::missing(&[NAME], &[GATE.to_owned()]), [NAME], "the gate's spelling is another name");
}

#[test]
fn what_a_pod_requires() {
    // req: 5945-NDF-2, 5945-NDF-7
    let (yes, no): (&[&str], &[&str]) = (&[NAME], &[]);
    let unallocated: ResourceClaim =
        from_value(json!({"metadata": {"namespace": "ns", "name": "a"}, "spec": {}})).unwrap();
    let elsewhere = SkipField::read(
        json!({"metadata": {"namespace": "other", "name": "a"}, "spec": {}, "status": {"allocation":
        {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x", "skipNodeOperations": true}]}}}}),
    );
    let rows = vec![
        (pod(&["a"]), vec![claim("a", &[json!(true)])], yes),
        (pod(&["a"]), vec![claim("a", &[json!(false)])], no),
        (pod(&["a"]), vec![claim("a", &[json!(null)])], no),
        (pod(&["a"]), vec![claim("a", &[json!(null), json!(true)])], yes),
        (pod(&["b", "a"]), vec![claim("b", &[json!(null)]), claim("a", &[json!(false), json!(true)])], yes),
        (pod(&["a"]), vec![unallocated], no),
        (pod(&["a"]), vec![], no),
        (pod(&["a"]), vec![claim("b", &[json!(true)])], no),
        (pod(&["a"]), vec![elsewhere.unwrap()], no),
        (pod(&[]), vec![claim("a", &[json!(true)])], no),
    ];
    for (pod, claims, expected) in rows {
        assert_eq!(required(Profile::Kep, &pod, &claims), expected);
        assert_eq!(required(Profile::V1_37, &pod, &claims), no, "nothing is inferred");
    }
}

#[test]
fn an_allocated_claim_keeps_further_pods_from_nodes_that_cannot_skip() {
    let rows = [(json!(true), true), (json!(["Unknown"]), true), (json!(false), false), (json!([]), false)];
    for (skip, expected) in rows {
        for (profile, name) in [(Profile::Kep, NAME), (Profile::V1_37, "DRAOptionalNodeOperations")] {
            let required = DeclaredFeature::new(profile).required_by_claim(&claim("a", &[json!(null), skip.clone()]));
            assert_eq!(required, expected.then_some(name), "{skip}");
        }
    }
}

#[test]
fn nodes_that_do_not_declare_it_are_out() {
    // req: 5945-NDF-3, 5945-SKEW-1, 5945-NDF-5
    let (old, gate, new) = (node("old", &[]), node("gate", &[GATE]), node("new", &["Another", NAME]));
    let required = required(Profile::Kep, &pod(&["a"]), &[claim("a", &[json!(true)])]);
    let among = CandidateNodes::from_nodes([&old, &gate, &new], &required);
    assert_eq!(among.fitting, ["new"]);
    let none = CandidateNodes::from_nodes([&old, &gate], &required);
    assert_eq!(
        none.message(),
        "0/2 nodes are available: 2 node(s) didn't match Pod's required features (DraOptionalNodePreparation)."
    );
    assert_eq!(CandidateNodes::FAILED_SCHEDULING, "FailedScheduling");
    // The pod fits after a kubelet has been upgraded.
    assert_eq!(CandidateNodes::from_nodes([&node("old", &[NAME]), &gate], &required).fitting, ["old"]);
    assert_eq!(CandidateNodes::from_nodes([&old, &gate], &[]).fitting, ["old", "gate"]);
}

#[test]
fn scheduler_and_kubelet_ask_the_same_function() {
    // req: 5945-NDF-6, 5945-KUBELET-9
    let (pod, claims) = (pod(&["a"]), [claim("a", &[json!(true)])]);
    let required = required(Profile::Kep, &pod, &claims);
    let refused = DeclaredFeature::check_admission(&required, &[]).unwrap_err();
    assert_eq!(refused.reason(), "PodFeatureUnsupported");
    assert_eq!(refused.to_string(), "Pod requires node features that are not available: DraOptionalNodePreparation");
    assert_eq!(DeclaredFeature::check_admission(&required, &[NAME.to_owned()]), Ok(()));
    let shipped = DeclaredFeature::new(Profile::V1_37).required_by(&pod, &claims, &version("1.37.0"));
    assert_eq!(DeclaredFeature::check_admission(shipped.as_slice(), &[]), Ok(()), "the shipped kubelet admits it");
}

#[test]
fn the_allocation_of_this_very_cycle_counts_before_binding() {
    // req: 5945-NDF-8
    let pod = pod(&["a"]);
    let before: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "a"}, "spec": {}})).unwrap();
    let (old, new) = (node("old", &[]), node("new", &[NAME]));
    let first = required(Profile::Kep, &pod, std::slice::from_ref(&before));
    assert_eq!(CandidateNodes::from_nodes([&old, &new], &first).fitting, ["old", "new"]);
    let allocated = ResourceClaim { status: claim("a", &[json!(true)]).status, ..before };
    let again = required(Profile::Kep, &pod, &[allocated]);
    assert_eq!(CandidateNodes::from_nodes([&old, &new], &again).fitting, ["new"]);
}

#[test]
fn the_last_version_with_the_constraint() {
    // req: 5945-NDF-4
    let since = version("1.37.0");
    assert!(Stage::Beta.restricts_nodes(&version("1.39.0"), &since), "not stable yet");
    assert!(Stage::Stable.restricts_nodes(&version("1.36.5"), &since), "old kubelets are allowed");
    assert!(!Stage::Stable.restricts_nodes(&since, &since));

    let (pod, claims) = (pod(&["a"]), [claim("a", &[json!(true)])]);
    let feature = DeclaredFeature::new(Profile::Kep).with_max_version(version("1.38.0"));
    let on = Component::new(Profile::Kep, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
    for (text, counts) in
        [("1.38.0", true), ("1.38.0-rc.1", true), ("1.38.1", false), ("1.39.0-alpha.2", false), ("0.0.0-alpha", true)]
    {
        assert_eq!(feature.required_by(&pod, &claims, &version(text)).is_some(), counts, "{text}");
        assert_eq!(feature.declared_by(on, &version(text)).is_some(), counts, "{text}");
    }
}

#[test]
fn lists_in_any_order_and_with_repetitions() {
    // A merge of two sorted lists would lose names if one list is not sorted.
    let declared = ["c", "a", "a"].map(str::to_owned);
    assert_eq!(DeclaredFeature::missing(&["a", "c"], &declared), [""; 0]);
    assert_eq!(DeclaredFeature::missing(&["d", "b", "d", "a"], &declared), ["b", "d"]);
    assert_eq!(DeclaredFeature::missing(&[], &[]), [""; 0]);
}

#[test]
fn the_gate_by_stage() {
    // req: 5945-GATE-1
    assert_eq!(Stage::Alpha.is_on(None), Ok(false));
    assert_eq!(Stage::Beta.is_on(None), Ok(true));
    for stage in [Stage::Alpha, Stage::Beta] {
        assert_eq!((stage.is_on(Some(true)), stage.is_on(Some(false))), (Ok(true), Ok(false)));
    }
    assert_eq!((Stage::Stable.is_on(None), Stage::Stable.is_on(Some(true))), (Ok(true), Ok(true)));
    assert_eq!(
        Stage::Stable.is_on(Some(false)).unwrap_err().to_string(),
        "the gate is locked to true: the feature is stable"
    );
    // The gate of this name is alpha: scheduler, API server and kubelet have it off unless it is set.
    for (text, set) in
        [("", None), ("DRAOptionalNodePreparation=true", Some(true)), ("DRAOptionalNodePreparation=false", Some(false))]
    {
        let scheduler = GateSet::parse(text, Profile::Kep).unwrap();
        assert_eq!(Ok(scheduler.has(Gate::OptionalNodeOperations)), Stage::Alpha.is_on(set), "{text}");
        let kubelet = GateSet::parse(text, Profile::Kep).unwrap();
        assert_eq!(Ok(kubelet.has(Gate::OptionalNodeOperations)), Stage::Alpha.is_on(set), "{text}");
    }
}

#[test]
fn claims_of_templates_and_for_extended_resources_count_as_well() {
    // req: 5945-NDF-2, 5945-NDF-7
    let made = |claim: Value| -> Pod {
        from_value(json!({
            "metadata": {"namespace": "ns", "name": "p"},
            "spec": {"containers": [], "resourceClaims": [
                {"name": "later", "resourceClaimTemplateName": "t"}, {"name": "gpu", "resourceClaimTemplateName": "t"},
            ]},
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]},
        }))
        .unwrap()
    };
    let mut extended = pod(&[]);
    extended.status =
        from_value(json!({"extendedResourceClaimStatus": {"resourceClaimName": "a", "requestMappings": []}})).unwrap();
    let rows = [(made(json!("a")), true), (made(json!(null)), false), (made(json!("b")), false), (extended, true)];
    for (pod, expected) in rows {
        assert_eq!(!required(Profile::Kep, &pod, &[claim("a", &[json!(true)])]).is_empty(), expected);
        assert!(required(Profile::Kep, &pod, &[claim("a", &[json!(false)])]).is_empty());
    }
}
