//! Validation of requests, and the queries that they ask.

use dra_attrs::Profile;
use dra_attrs::{Gate, GateSet};
use k8s_openapi::api::resource::v1alpha3;
use poolstatus::{Query, StatusRequest, kep};
use serde_json::{Value, from_value, json};

use crate::cluster::DRIVER;

fn kep_request(spec: Value) -> kep::ResourcePoolStatusRequest {
    from_value(json!({"metadata": {"name": "check"}, "spec": spec})).unwrap()
}

fn shipped_request(spec: Value) -> v1alpha3::ResourcePoolStatusRequest {
    from_value(json!({"metadata": {"name": "check"}, "spec": spec})).unwrap()
}

/// Returns the errors of a spec in the KEP's form and in `v1alpha3`, as field and type.
fn problems(spec: Value) -> [Vec<String>; 2] {
    let gates = GateSet::of(Profile::V1_37).with(Gate::PartitionableDevicesType);
    let of = |request: StatusRequest<'_>| {
        let problems = request.validate(gates);
        problems.iter().map(|error| format!("{} {}", error.field, error.r#type.name())).collect()
    };
    [of((&kep_request(spec.clone())).into()), of((&shipped_request(spec)).into())]
}

fn both(problem: &str) -> [Vec<String>; 2] {
    let list = || if problem.is_empty() { vec![] } else { vec![problem.to_owned()] };
    [list(), list()]
}

#[test]
fn the_driver() {
    // req: 5677-REQ-1
    for driver in [DRIVER, "GPU.Example.com", "d", &format!("{}.example", "d".repeat(63))] {
        assert_eq!(problems(json!({"driver": driver})), both(""), "{driver}");
    }
    assert_eq!(problems(json!({})), both("spec.driver FieldValueRequired"));
    assert_eq!(problems(json!({"driver": ""})), both("spec.driver FieldValueRequired"));
    let long = "d.".repeat(127) + "d";
    for driver in ["gpu_example", "-gpu", "gpu.", "a/b/c", "/gpu", "gpu example", "gpu\u{e9}", &long] {
        assert_eq!(problems(json!({"driver": driver})), both("spec.driver FieldValueInvalid"), "{driver}");
    }
    // The KEP's examples have a slash, which is invalid in a driver name.
    let [kep, shipped] = problems(json!({"driver": "example.com/gpu"}));
    assert_eq!((kep, shipped), (vec![], vec!["spec.driver FieldValueInvalid".to_owned()]));
}

#[test]
fn the_name_of_the_pool() {
    // req: 5677-REQ-2
    for pool in ["node-1", "rack-1/node-1", "a.b/c.d"] {
        assert_eq!(problems(json!({"driver": DRIVER, "poolName": pool})), both(""), "{pool}");
    }
    for pool in ["Node", "a//b", "/a", "a/", "a b"] {
        assert_eq!(
            problems(json!({"driver": DRIVER, "poolName": pool})),
            both("spec.poolName FieldValueInvalid"),
            "{pool}"
        );
    }
    let long = format!("{}/{}", "a".repeat(126), "b".repeat(127));
    assert_eq!(problems(json!({"driver": DRIVER, "poolName": long})), both("spec.poolName FieldValueTooLong"));
    // In the KEP's form the field is a string that is empty if unset.
    let [kep, shipped] = problems(json!({"driver": DRIVER, "poolName": ""}));
    assert_eq!((kep, shipped), (vec![], vec!["spec.poolName FieldValueInvalid".to_owned()]));
    let request = kep_request(json!({"driver": DRIVER, "poolName": ""}));
    assert_eq!(Query::from_request((&request).into()).unwrap().pool(), None);
    let request = kep_request(json!({"driver": DRIVER, "poolName": "node-1"}));
    assert_eq!(Query::from_request((&request).into()).unwrap().pool(), Some("node-1"));
}

#[test]
fn names_are_worded_as_the_api_server_words_them() {
    const LABELS: &str = r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'";
    let text =
        |spec: Value| StatusRequest::from(&shipped_request(spec)).validate(GateSet::of(Profile::V1_37)).to_string();
    let driver = |name: &str| text(json!({"driver": name}));
    let pool = |name: &str| text(json!({"driver": DRIVER, "poolName": name}));
    assert_eq!(
        driver("a b"),
        format!(
            "spec.driver: Invalid value: \"a b\": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is {LABELS})"
        )
    );
    assert!(driver(&"a".repeat(254)).ends_with("\": must be no more than 253 bytes"));
    assert_eq!(pool("a//b"), "spec.poolName: Invalid value: \"a//b\": segment 1: must not be empty");
    assert_eq!(
        pool("A/b"),
        format!(
            "spec.poolName: Invalid value: \"A\": segment 0: a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is {LABELS})"
        )
    );
    let both = pool(&"a".repeat(254));
    assert!(
        both.starts_with("[spec.poolName: Too long: may not be more than 253 bytes, spec.poolName: Invalid value: ")
    );
    assert!(both.ends_with("\": segment 0: must be no more than 253 bytes]"), "{both}");
}

#[test]
fn the_limit() {
    // req: 5677-REQ-3
    for limit in [1, 100, 1000] {
        assert_eq!(problems(json!({"driver": DRIVER, "limit": limit})), both(""));
        let request = shipped_request(json!({"driver": DRIVER, "limit": limit}));
        assert_eq!(Query::from_request((&request).into()).unwrap().limit(), usize::try_from(limit).unwrap());
    }
    for limit in [0, -1, 1001, i32::MAX, i32::MIN] {
        assert_eq!(problems(json!({"driver": DRIVER, "limit": limit})), both("spec.limit FieldValueInvalid"));
        let request = kep_request(json!({"driver": DRIVER, "limit": limit}));
        assert!(Query::from_request((&request).into()).is_err());
    }
    let request = kep_request(json!({"driver": DRIVER}));
    assert_eq!(
        Query::from_request((&request).into()).unwrap().limit(),
        usize::try_from(StatusRequest::DEFAULT_LIMIT).unwrap()
    );
    let request = shipped_request(json!({"driver": DRIVER, "limit": 1001}));
    let text = StatusRequest::from(&request).validate(GateSet::of(Profile::V1_37)).to_string();
    assert_eq!(text, "spec.limit: Invalid value: 1001: must be less than or equal to 1000");
}

#[test]
fn the_attribute_of_partitions() {
    let request =
        |attribute: &str| shipped_request(json!({"driver": DRIVER, "defaultPartitionTypeAttribute": attribute}));
    let good = request("gpu.example.com/profile");
    assert!(
        StatusRequest::from(&good)
            .validate(GateSet::of(Profile::V1_37).with(Gate::PartitionableDevicesType))
            .is_empty()
    );
    let query = Query::from_request((&good).into()).unwrap();
    assert_eq!(query.partition_type_attribute(), Some("gpu.example.com/profile"), "what is stored counts");

    let off = StatusRequest::from(&good).validate(GateSet::of(Profile::V1_37));
    assert_eq!(
        off.to_string(),
        "spec.defaultPartitionTypeAttribute: Forbidden: field requires the DRAPartitionableDevicesType feature gate"
    );
    assert_eq!(
        StatusRequest::from(&request("profile")).validate(GateSet::of(Profile::V1_37)),
        off,
        "what it says does not matter then"
    );

    let problems = |attribute: &str| {
        let problems = StatusRequest::from(&request(attribute))
            .validate(GateSet::of(Profile::V1_37).with(Gate::PartitionableDevicesType));
        problems.iter().map(|error| error.r#type.name()).collect::<Vec<_>>()
    };
    for attribute in ["gpu.example.com/", "GPU.example.com/profile", "gpu.example.com/a-b", "profile"] {
        assert_eq!(problems(attribute), ["FieldValueInvalid"], "{attribute}");
    }
    let (long_domain, long_id) = (format!("{}/p", "x.".repeat(32) + "x"), format!("a/{}", "p".repeat(33)));
    assert_eq!((problems(&long_domain), problems(&long_id)), (vec!["FieldValueTooLong"], vec!["FieldValueTooLong"]));
    assert_eq!(problems(""), ["FieldValueInvalid"; 2], "no identifier, and no domain");
    assert!(Query::from_request((&request("profile")).into()).is_err());
}

#[test]
fn an_attribute_with_several_slashes_is_accepted_as_by_the_api_server() {
    let spec = json!({"driver": DRIVER, "defaultPartitionTypeAttribute": "a/b/c"});
    assert_eq!(Query::from_request((&shipped_request(spec)).into()).unwrap().partition_type_attribute(), Some("a/b/c"));
}

#[test]
fn the_name_of_the_request() {
    let named = |name: Value| {
        let request: kep::ResourcePoolStatusRequest =
            from_value(json!({"metadata": {"name": name}, "spec": {"driver": DRIVER}})).unwrap();
        let problems = StatusRequest::from(&request).validate(GateSet::of(Profile::V1_37));
        problems.iter().map(|error| error.r#type.name()).collect::<Vec<_>>()
    };
    assert!(named(json!("check-gpus-1707300000")).is_empty());
    assert_eq!(named(json!(null)), ["FieldValueRequired"]);
    assert_eq!(named(json!("Check")), ["FieldValueInvalid"]);
    let mut generated = kep_request(json!({"driver": DRIVER}));
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("check-".to_owned());
    assert!(StatusRequest::from(&generated).validate(GateSet::of(Profile::V1_37)).is_empty());
}

#[test]
fn a_request_may_go_at_once() {
    let request = kep_request(json!({"driver": DRIVER, "ttlSecondsAfterComplete": 0}));
    assert!(Query::from_request((&request).into()).is_ok());
}

#[test]
fn every_problem_is_reported() {
    let spec = json!({"driver": "-", "poolName": "-", "limit": 0, "ttlSecondsAfterComplete": -1});
    let request = kep_request(spec);
    let problems = Query::from_request((&request).into()).unwrap_err();
    let fields: Vec<_> = problems.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["spec.driver", "spec.poolName", "spec.limit", "spec.ttlSecondsAfterComplete"]);
}

#[test]
fn the_spec_is_immutable() {
    // req: 5677-REQ-4
    let specs = [
        json!({"driver": DRIVER}),
        json!({"driver": "nic.example.com"}),
        json!({"driver": DRIVER, "poolName": "node-1"}),
        json!({"driver": DRIVER, "limit": 5}),
    ];
    for (index, old) in specs.iter().enumerate() {
        for (other, new) in specs.iter().enumerate() {
            let kep = [kep_request(old.clone()), kep_request(new.clone())];
            let shipped = [shipped_request(old.clone()), shipped_request(new.clone())];
            let kep = StatusRequest::from(&kep[0]).validate_update((&kep[1]).into());
            let shipped = StatusRequest::from(&shipped[0]).validate_update((&shipped[1]).into());
            assert_eq!(kep, shipped);
            assert_eq!(kep.is_empty(), index == other, "{old} to {new}");
            assert!(kep.iter().all(|error| error.to_string() == "spec: Invalid value: null: field is immutable"));
        }
    }
    let [old, new] = [json!("gpu.example.com/a"), json!("gpu.example.com/b")]
        .map(|attribute| shipped_request(json!({"driver": DRIVER, "defaultPartitionTypeAttribute": attribute})));
    assert_eq!(StatusRequest::from(&old).validate_update((&new).into()).len(), 1);
    let [none, old] =
        [json!({"driver": DRIVER}), json!({"driver": DRIVER, "defaultPartitionTypeAttribute": "a.example/t"})]
            .map(shipped_request);
    assert_eq!(StatusRequest::from(&none).validate_update((&old).into()).len(), 1, "set");
    assert_eq!(StatusRequest::from(&old).validate_update((&none).into()).len(), 1, "cleared");
    let ttl =
        [json!({}), json!({"ttlSecondsAfterComplete": 0}), json!({"ttlSecondsAfterComplete": 5})].map(kep_request);
    for (index, old) in ttl.iter().enumerate() {
        for (other, new) in ttl.iter().enumerate() {
            assert_eq!(
                StatusRequest::from(old).validate_update(new.into()).is_empty(),
                index == other,
                "{index} to {other}"
            );
        }
    }
    // A missing limit equals the default.
    let [old, new] = [json!({"driver": DRIVER, "limit": 100}), json!({"driver": DRIVER})].map(shipped_request);
    assert!(StatusRequest::from(&old).validate_update((&new).into()).is_empty());
    // Metadata such as labels may change.
    let mut labelled = shipped_request(specs[0].clone());
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert!(StatusRequest::from(&shipped_request(specs[0].clone())).validate_update((&labelled).into()).is_empty());
}
