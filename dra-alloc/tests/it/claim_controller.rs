//! The controller for claims: what it makes, records, reserves and takes back, against an API server in memory.

use std::collections::BTreeMap;

use dra_alloc::claim_controller::{
    ClaimController, ControllerCall, ControllerResponse, PodGroupVersion, QueueKey, SyncStep, generate_name,
};
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodOptions;
use dra_alloc::{Gate, GateSet, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde_json::{Value, from_value, json};

const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

fn options() -> PodOptions {
    PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims)))
}

fn template(name: &str) -> ResourceClaimTemplate {
    from_value(json!({"metadata": {"namespace": "ns", "name": name}, "spec": {
        "metadata": {"labels": {"l": "v"}, "annotations": {"x": "y"}}, "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}}))
    .unwrap()
}

/// A pod `p` with changes to its fields.
fn pod(spec: Value, status: Value) -> Pod {
    from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p-uid"}, "spec": spec, "status": status}))
        .unwrap()
}

fn group(status: Value) -> PodGroup {
    from_value(json!({"metadata": {"namespace": "ns", "name": "g", "uid": "g-uid"},
        "spec": {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]}, "status": status}))
    .unwrap()
}

fn claim(name: &str, owner: Option<(&str, &str, &str)>, status: Value) -> ResourceClaim {
    let owners: Vec<Value> = owner
        .map(|(version, kind, name)| {
            json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("{name}-uid"), "controller": true})
        })
        .into_iter()
        .collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid"), "ownerReferences": owners,
        "annotations": {"resource.kubernetes.io/pod-claim-name": "a"}, "finalizers": [FINALIZER]}, "spec": {}, "status": status}))
    .unwrap()
}

/// A controller with an API server that carries out its calls and shows them to it.
struct Server {
    controller: ClaimController,
    claims: BTreeMap<ClaimKey, ResourceClaim>,
    calls: Vec<String>,
    /// UID of what only the server has.
    unseen: Option<String>,
    created: usize,
}

impl Server {
    fn new(options: PodOptions, claims: Vec<ResourceClaim>) -> Self {
        let mut controller = ClaimController::new(options);
        controller.observe_template(template("t"));
        let claims: BTreeMap<_, _> =
            claims.into_iter().map(|claim| (ClaimKey::from_metadata(&claim.metadata), claim)).collect();
        for claim in claims.values() {
            controller.observe_claim(claim.clone());
        }
        Self { controller, claims, calls: Vec::new(), unseen: None, created: 0 }
    }

    fn put(&mut self, claim: ResourceClaim) -> ControllerResponse {
        self.claims.insert(ClaimKey::from_metadata(&claim.metadata), claim.clone());
        self.controller.observe_claim(claim.clone());
        ControllerResponse::Claim(Box::new(claim))
    }

    fn call(&mut self, call: ControllerCall) -> ControllerResponse {
        let name = |claim: &ResourceClaim| claim.metadata.name.clone().unwrap_or_default();
        match call {
            ControllerCall::CreateClaim { mut claim } => {
                self.created += 1;
                claim.metadata.name =
                    Some(format!("{}{}", claim.metadata.generate_name.as_deref().unwrap(), self.created));
                self.calls.push(format!("create {}", name(&claim)));
                self.put(*claim)
            }
            ControllerCall::RecordClaims { owner, body } => {
                let statuses = &body["status"]["resourceClaimStatuses"];
                let names: Vec<String> = statuses
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|entry| {
                        format!("{}={}", entry["name"].as_str().unwrap(), entry["resourceClaimName"].as_str().unwrap())
                    })
                    .collect();
                self.calls.push(format!("record {owner} {} {}", body["apiVersion"].as_str().unwrap(), names.join(" ")));
                ControllerResponse::Done
            }
            ControllerCall::UpdateStatus { claim } => {
                let status = claim.status.clone().unwrap_or_default();
                let consumers: Vec<String> =
                    status.reserved_for.iter().flatten().map(|entry| entry.uid.clone()).collect();
                let allocation = if status.allocation.is_some() { "allocated" } else { "free" };
                self.calls.push(
                    format!("status {} {allocation} {}", name(&claim), consumers.join(" ")).trim_end().to_owned(),
                );
                self.put(*claim)
            }
            ControllerCall::Update { claim } => {
                self.calls.push(format!("finalizers {}", name(&claim)));
                self.put(*claim)
            }
            ControllerCall::DeleteClaim { claim, .. } => {
                self.calls.push(format!("delete {}", claim.name));
                self.claims.remove(&claim);
                self.controller.observe_claim_deleted(&claim.namespace, &claim.name);
                ControllerResponse::Done
            }
            ControllerCall::GetConsumer { consumer, .. } => {
                self.calls.push(format!("get {} {}", consumer.resource, consumer.name));
                ControllerResponse::Consumer(self.unseen.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Looks at a key and returns the calls and the error.
    fn sync(&mut self, key: &str) -> (Vec<String>, Option<String>) {
        let key: QueueKey = key.parse().unwrap();
        let mut sync = self.controller.sync(&key);
        let error = loop {
            match sync.next_step() {
                SyncStep::Call(call) => {
                    let answer = self.call(call);
                    sync.answer(answer);
                }
                SyncStep::Failed(error) => break Some(error.to_string()),
                _ => break None,
            }
        };
        (std::mem::take(&mut self.calls), error)
    }
}

fn shown(keys: &[QueueKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn two_templates() -> Value {
    json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimTemplateName": "u"}]})
}

#[test]
fn claims_are_made_in_order_until_one_fails() {
    let mut server = Server::new(options(), Vec::new());
    server.controller.observe_pod(pod(two_templates(), json!({})));
    let missing = "pod ns/p, PodResourceClaim b: resource claim template \"u\": \
                   resourceclaimtemplate.resource.k8s.io \"u\" not found";
    assert_eq!(server.sync("pod:ns/p"), (vec!["create p-a-1".to_owned()], Some(missing.to_owned())));
    // The claim is found by its annotation and not made again.
    assert_eq!(shown(&server.controller.observe_template(template("u"))), ["pod:ns/p"]);
    let expected = ["create p-b-2", "record pod:ns/p v1 a=p-a-1 b=p-b-2"].map(str::to_owned);
    assert_eq!(server.sync("pod:ns/p"), (expected.to_vec(), None));
    let made = &server.claims[&ClaimKey::new("ns", "p-b-2")];
    assert_eq!(made.metadata.labels.as_ref().unwrap()["l"], "v");
    assert_eq!(made.metadata.annotations.as_ref().unwrap()["x"], "y");
}

#[test]
fn the_owner_blocks_its_deletion_in_the_first_release_alone() {
    let blocks = |profile: Profile| {
        let mut server = Server::new(PodOptions::new(profile), Vec::new());
        let entry = json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]});
        server.controller.observe_pod(pod(entry, json!({})));
        server.sync("pod:ns/p");
        let made = &server.claims[&ClaimKey::new("ns", "p-a-1")];
        made.metadata.owner_references.as_ref().unwrap()[0].block_owner_deletion
    };
    assert_eq!([Profile::V1_34, Profile::V1_35, Profile::V1_37].map(blocks), [Some(true), None, None]);
}

#[test]
fn events_of_older_releases_give_less_to_do() {
    let entries = json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimTemplateName": "t"}]});
    let second_is_missing = pod(entries.clone(), json!({"resourceClaimStatuses": [{"name": "a"}]}));
    let ended = pod(
        json!({}),
        json!({"phase": "Succeeded", "extendedResourceClaimStatus":
        {"resourceClaimName": "special", "requestMappings": []}}),
    );
    let of = |profile: Profile| {
        let controller = || ClaimController::new(PodOptions::new(profile));
        let mut late = controller();
        late.observe_pod(pod(entries.clone(), json!({})));
        let keys = [
            controller().observe_pod(second_is_missing.clone()),
            controller().observe_pod(ended.clone()),
            late.observe_template(template("t")),
        ];
        keys.map(|keys| shown(&keys).join(" "))
    };
    assert_eq!(of(Profile::V1_34), ["", "", ""]);
    assert_eq!(of(Profile::V1_35), ["", "claim:ns/special", ""]);
    for profile in [Profile::V1_36, Profile::V1_37] {
        assert_eq!(of(profile), ["pod:ns/p", "claim:ns/special", "pod:ns/p"]);
    }
}

#[test]
fn errors_of_entries() {
    let admin = json!({"exactly": {"deviceClassName": "gpu", "adminAccess": true}, "name": "r"});
    let listed = json!({"firstAvailable": [{"name": "s", "deviceClassName": "gpu"}], "name": "r"});
    let rows = [
        (
            json!({"name": "a"}),
            json!({}),
            "checking for claim before creating it: pod \"ns/p\", spec.resourceClaim \"a\": none of the supported fields are set",
        ),
        (
            json!({"name": "a", "resourceClaimTemplateName": "t"}),
            admin,
            "admin access is requested, but the feature is disabled",
        ),
        (
            json!({"name": "a", "resourceClaimTemplateName": "t"}),
            listed,
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ];
    let gates = GateSet::of(Profile::V1_37).without(Gate::AdminAccess).without(Gate::PrioritizedList);
    for (entry, request, expected) in rows {
        let mut server = Server::new(PodOptions::new(Component::new(Profile::V1_37, gates)), Vec::new());
        let mut template = template("t");
        template.spec = from_value(json!({"spec": {"devices": {"requests": [request]}}})).unwrap();
        server.controller.observe_template(template);
        server.controller.observe_pod(pod(json!({"resourceClaims": [entry]}), json!({})));
        let (calls, error) = server.sync("pod:ns/p");
        assert_eq!((calls.len(), error.unwrap()), (0, format!("pod ns/p, PodResourceClaim a: {expected}")));
    }
}

#[test]
fn refused_calls_end_the_work() {
    let mut controller = ClaimController::new(options());
    controller.observe_template(template("t"));
    let entries = json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]});
    let keys = controller.observe_pod(pod(entries, json!({})));
    let mut sync = controller.sync(&keys[0]);
    assert!(matches!(sync.next_step(), SyncStep::Call(ControllerCall::CreateClaim { .. })));
    sync.answer(ControllerResponse::Failed("quota".to_owned()));
    let SyncStep::Failed(error) = sync.next_step() else { panic!("the claim was refused") };
    assert_eq!(error.to_string(), "pod ns/p, PodResourceClaim a: create ResourceClaim : quota");
    assert_eq!(error.event().as_deref(), Some("PodResourceClaim a: create ResourceClaim : quota"));
    sync.answer(ControllerResponse::Done);
    assert!(matches!(sync.next_step(), SyncStep::Failed(_)), "an error is the end");
}

#[test]
fn groups_make_claims_and_their_pods_wait() {
    let mut server = Server::new(options(), Vec::new());
    server.controller = server.controller.with_group_version(PodGroupVersion::V1Alpha2);
    let of_group = json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}],
        "schedulingGroup": {"podGroupName": "g"}});
    server.controller.observe_pod(pod(of_group.clone(), json!({})));
    let unknown = "pod ns/p, PodResourceClaim a: podgroup.scheduling.k8s.io \"g\" not found";
    assert_eq!(server.sync("pod:ns/p"), (Vec::new(), Some(unknown.to_owned())));
    assert_eq!(shown(&server.controller.observe_pod_group(group(json!({})))), ["podgroup:ns/g", "pod:ns/p"]);
    assert_eq!(server.sync("pod:ns/p"), (Vec::new(), None), "the pod waits for its group");
    let made = ["create g-a-1", "record podgroup:ns/g scheduling.k8s.io/v1alpha2 a=g-a-1"].map(str::to_owned);
    assert_eq!(server.sync("podgroup:ns/g"), (made.to_vec(), None));
    assert_eq!(server.sync("pod:ns/p"), (vec!["record pod:ns/p v1 a=g-a-1".to_owned()], None));

    let recorded = group(json!({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "g-a-1"}]}));
    assert_eq!(shown(&server.controller.observe_pod_group(recorded.clone())), ["pod:ns/p"]);
    assert_eq!(shown(&server.controller.observe_pod_group_deleted(&recorded)), ["claim:ns/g-a-1"]);

    // Without the gate the pod has a claim of its own.
    let mut server = Server::new(PodOptions::new(Profile::V1_37), Vec::new());
    assert!(server.controller.observe_pod_group(group(json!({}))).is_empty());
    server.controller.observe_pod(pod(of_group, json!({})));
    assert_eq!(server.sync("pod:ns/p").0, ["create p-a-1", "record pod:ns/p v1 a=p-a-1"]);
    assert_eq!(server.sync("podgroup:ns/g"), (Vec::new(), None));
}

#[test]
fn pods_on_nodes_get_their_reservations() {
    let allocated = json!({"allocation": {}});
    let named = json!({"nodeName": "n", "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]});
    let mut server = Server::new(options(), vec![claim("c", None, allocated.clone())]);
    assert_eq!(shown(&server.controller.observe_pod(pod(named, json!({})))), ["pod:ns/p"]);
    assert_eq!(server.sync("pod:ns/p"), (vec!["status c allocated p-uid".to_owned()], None));
    assert_eq!(server.sync("pod:ns/p"), (Vec::new(), None));

    // A claim of the group is reserved for the group.
    let of_group = json!({"nodeName": "n", "schedulingGroup": {"podGroupName": "g"},
        "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]});
    let recorded = json!({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}]});
    let owner = Some(("scheduling.k8s.io/v1beta1", "PodGroup", "g"));
    let mut server = Server::new(options(), vec![claim("c", owner, allocated.clone())]);
    server.controller.observe_pod_group(group(json!({})));
    server.controller.observe_pod(pod(of_group, recorded));
    assert_eq!(server.sync("pod:ns/p"), (vec!["status c allocated g-uid".to_owned()], None));

    // A name that is recorded only now is reserved at the next look.
    let made = json!({"nodeName": "n", "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]});
    let mut server = Server::new(options(), vec![claim("c", Some(("v1", "Pod", "p")), allocated)]);
    server.controller.observe_pod(pod(made, json!({})));
    let (calls, error) = server.sync("pod:ns/p");
    assert_eq!(
        (calls.as_slice(), error.as_deref()),
        (&["record pod:ns/p v1 a=c".to_owned()][..], Some("pod \"ns/p\": ResourceClaim not created yet"))
    );

    // A claim with 256 consumers is full.
    let consumers: Vec<Value> =
        (0..256).map(|uid| json!({"resource": "pods", "name": "q", "uid": format!("{uid}")})).collect();
    let full = claim("c", None, json!({"allocation": {}, "reservedFor": consumers}));
    let mut server = Server::new(options(), vec![full]);
    server.controller.observe_pod(pod(
        json!({"nodeName": "n", "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}),
        json!({}),
    ));
    assert!(
        server.sync("pod:ns/p").1.unwrap().starts_with("reserve claim ns/c for pod: the claim is reserved for 256")
    );
}

#[test]
fn consumers_that_are_gone_lose_the_claim() {
    let reserved = |entries: Value| claim("c", None, json!({"allocation": {}, "reservedFor": entries}));
    let entry = json!({"resource": "pods", "name": "p", "uid": "p-uid"});
    let of_group = json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-uid"});
    let other = json!({"apiGroup": "foo.com", "resource": "foos", "name": "f", "uid": "f-uid"});
    let freed = ["status c free".to_owned(), "finalizers c".to_owned()];
    let asked = |kind: &str| [vec![format!("get {kind}")], freed.to_vec()].concat();
    let node = json!({"nodeName": "n"});
    let gone = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p-uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let rows: Vec<(&str, Value, Option<Pod>, Vec<String>)> = vec![
        ("runs", json!([entry]), Some(pod(node.clone(), json!({"phase": "Running"}))), vec![]),
        ("failed", json!([entry]), Some(pod(node, json!({"phase": "Failed"}))), freed.to_vec()),
        ("gone, never on a node", json!([entry]), Some(from_value(gone).unwrap()), freed.to_vec()),
        (
            "replaced",
            json!([{"resource": "pods", "name": "p", "uid": "old"}]),
            Some(pod(json!({}), json!({}))),
            freed.to_vec(),
        ),
        ("unknown", json!([entry]), None, asked("pods p")),
        ("group unknown", json!([of_group]), None, asked("podgroups g")),
        (
            "others stay",
            json!([entry, other]),
            None,
            vec!["get pods p".to_owned(), "status c allocated f-uid".to_owned()],
        ),
        ("only others", json!([other]), None, vec![]),
    ];
    for (name, entries, pod, expected) in rows {
        let mut server = Server::new(options(), vec![reserved(entries)]);
        if let Some(pod) = pod {
            server.controller.observe_pod(pod);
        }
        assert_eq!(server.sync("claim:ns/c"), (expected, None), "{name}");
        assert!(
            server.sync("claim:ns/c").0.iter().all(|call| call.starts_with("get ")),
            "{name}: nothing is left to do"
        );
    }

    // The API server still has the pod, which the controller has not seen yet.
    let mut server = Server::new(options(), vec![reserved(json!([entry]))]);
    server.unseen = Some("p-uid".to_owned());
    assert_eq!(server.sync("claim:ns/c"), (vec!["get pods p".to_owned()], None));
    // A pod that was seen deleted is not asked for.
    server.controller.observe_pod_deleted(&pod(json!({}), json!({})));
    assert_eq!(server.sync("claim:ns/c"), (freed.to_vec(), None));
    // Without the gate groups stay for ever.
    let mut server = Server::new(PodOptions::new(Profile::V1_37), vec![reserved(json!([of_group]))]);
    assert_eq!(server.sync("claim:ns/c"), (Vec::new(), None));
}

#[test]
fn a_claim_without_consumers_keeps_its_devices_until_it_is_deleted() {
    let mut unused = claim("c", None, json!({"allocation": {}}));
    let mut server = Server::new(options(), vec![unused.clone()]);
    assert_eq!(server.sync("claim:ns/c"), (Vec::new(), None));
    unused.metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let mut server = Server::new(options(), vec![unused.clone()]);
    assert_eq!(server.sync("claim:ns/c").0, ["status c free", "finalizers c"]);
    unused.status = None;
    let mut server = Server::new(options(), vec![unused.clone()]);
    assert_eq!(server.sync("claim:ns/c").0, ["finalizers c"]);
    unused.metadata.finalizers = None;
    assert_eq!(Server::new(options(), vec![unused]).sync("claim:ns/c"), (Vec::new(), None));
}

#[test]
fn claims_of_pods_that_are_done_are_deleted() {
    let owner = Some(("v1", "Pod", "p"));
    let reserved = json!({"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-uid"}]});
    let mut server = Server::new(options(), vec![claim("c", owner, reserved)]);
    let done = pod(
        json!({"nodeName": "n", "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]}),
        json!({"phase": "Succeeded", "resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}]}),
    );
    assert_eq!(shown(&server.controller.observe_pod(done)), ["claim:ns/c"]);
    assert_eq!(server.sync("claim:ns/c").0, ["status c free", "finalizers c", "delete c"]);
    assert_eq!(server.sync("claim:ns/c"), (Vec::new(), None));
}

#[test]
fn a_claim_was_made_for_its_owner_if_that_is_a_pod_or_a_group() {
    let spec = json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]});
    for (version, kind, is_made) in [
        ("v1", "Pod", true),
        ("example.com/v1", "Pod", false),
        ("v1", "Node", false),
        ("scheduling.k8s.io/v1beta1", "PodGroup", true),
        ("example.com/v1", "PodGroup", false),
    ] {
        let mut server = Server::new(options(), vec![claim("c", Some((version, kind, "p")), json!({}))]);
        server.controller.observe_pod(pod(spec.clone(), json!({})));
        let calls = server.sync("pod:ns/p").0;
        let expected: &[&str] =
            if is_made { &["record pod:ns/p v1 a=c"] } else { &["create p-a-1", "record pod:ns/p v1 a=p-a-1"] };
        assert_eq!(calls, expected, "{version} {kind}");
    }
}

#[test]
fn keys_of_events() {
    let extended =
        json!({"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}, "phase": "Succeeded"});
    let named = json!({"resourceClaims": [{"name": "a", "resourceClaimName": "c"}]});
    let waiting = json!({"resourceClaims": [{"name": "n", "resourceClaimTemplateName": "t"}, {"name": "a", "resourceClaimTemplateName": "t"}]});
    let needless = json!({"resourceClaimStatuses": [{"name": "n"}]});
    let rows: [(&str, Value, Value, &[&str]); 6] = [
        ("no claims", json!({}), json!({}), &[]),
        ("only extended resources, done", json!({}), extended, &["claim:ns/x"]),
        ("the user makes the claim", named.clone(), json!({}), &[]),
        ("done", named.clone(), json!({"phase": "Failed"}), &["claim:ns/c"]),
        ("not created", waiting.clone(), json!({}), &["pod:ns/p"]),
        ("an entry that needs no claim is passed over", waiting, needless, &["pod:ns/p"]),
    ];
    for (name, spec, status, expected) in rows {
        let mut controller = ClaimController::new(options());
        assert_eq!(shown(&controller.observe_pod(pod(spec, status))), expected, "{name}");
    }
    // A claim that changes concerns the pods that name it.
    let mut controller = ClaimController::new(options());
    let mut on_node = named;
    on_node["nodeName"] = json!("n");
    controller.observe_pod(pod(on_node, json!({})));
    let keys = controller.observe_claim(claim("c", None, json!({"allocation": {}})));
    assert_eq!(shown(&keys), ["claim:ns/c", "pod:ns/p"]);
    assert!(controller.observe_claim_deleted("ns", "c").is_empty());
}

#[test]
fn generated_names() {
    let p = |length: usize| "p".repeat(length);
    let rows = [
        (p(1), "e".to_owned(), "p-e-".to_owned()),
        (p(51), "cccc".to_owned(), format!("{}-cccc-", p(51))),
        (p(50), "cccccc".to_owned(), format!("{}-ccccc", p(49))),
        (p(253), "e".to_owned(), format!("{}-", p(56))),
        // A character of two bytes is not split: 1 of 2 and 54 of 80 bytes are left.
        ("ä".to_owned(), "ö".repeat(40), format!("-{}", "ö".repeat(27))),
    ];
    for (owner, entry, expected) in rows {
        assert_eq!(generate_name(&owner, &entry), expected, "{owner} {entry}");
    }
}
