//! Requests with the answers of a real API server, chosen by reading the rules of Kubernetes 1.36: code, reason, message, and the
//! fields and types of causes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use serde_json::{Value, json};

use client::{CLAIMS, PODS, ask, claim, pod, send, started};

/// Request with its refusal: method, path, body, code, reason, message.
type Refused<'r> = (&'r str, &'r str, Value, u16, &'r str, &'r str);

fn all_refused(server: &stand_in::Server, rows: &[Refused<'_>]) {
    for (method, path, body, code, reason, message) in rows {
        let answer = ask(server, method, path, body);
        assert_eq!(answer.said(), (*code, *reason, *message), "{method} {path} {body}");
    }
}

#[test]
fn a_pod_needs_its_service_account() {
    let server = stand_in::Server::start().unwrap();
    let answer = ask(&server, "POST", PODS, &pod("a"));
    let message = "pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found";
    assert_eq!(answer.said(), (403, "Forbidden", message));
    let off = stand_in::Server::start_with(&["--disable-admission-plugins", "ServiceAccount"]).unwrap();
    let stored = ask(&off, "POST", PODS, &pod("a")).body;
    assert_eq!((stored["spec"].get("serviceAccountName"), stored["spec"].get("volumes")), (None, None));
}

#[test]
fn a_pod_has_the_defaults_of_a_real_server() {
    let server = started(&["--release", "1.36", "--seed", "1"]);
    let mut body = pod("a");
    body["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    body["spec"]["containers"][0]["image"] = json!("registry.example:5000/x:v1");
    let answer = ask(&server, "POST", PODS, &body);
    assert_eq!(answer.code, 201);
    let volume = answer.text("/spec/volumes/0/name").to_owned();
    let mount = json!({"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": volume, "readOnly": true});
    let toleration =
        |key: &str| json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300});
    assert_eq!(
        answer.body["spec"],
        json!({
            "containers": [{
                "name": "m", "image": "registry.example:5000/x:v1", "imagePullPolicy": "IfNotPresent",
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "volumeMounts": [mount],
            }],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "priority": 0,
            "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "default",
            "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
            "tolerations": [toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")],
            "volumes": [{"name": volume, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]}},
            ]}}],
        })
    );
    assert_eq!(answer.body["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
    let node = ask(&server, "GET", "/api/v1/nodes/n1", &Value::Null).body;
    assert_eq!(node["spec"], json!({"taints": [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}]}));
}

#[test]
fn a_template_of_pods_makes_claims_whose_names_nobody_knows_yet() {
    let server = started(&["--release", "1.36"]);
    let mut spec = pod("a")["spec"].take();
    spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]);
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let body = json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(ask(&server, "POST", deployments, &body).code, 201);
    // The name in the template is still looked at.
    let mut wrong = body;
    wrong["metadata"]["name"] = json!("b");
    wrong["spec"]["template"]["spec"]["resourceClaims"][0]["name"] = json!("No");
    let answer = ask(&server, "POST", deployments, &wrong);
    let fields = answer.body["details"]["causes"].as_array().unwrap();
    assert!(
        fields.iter().any(|cause| cause["field"] == "spec.template.spec.resourceClaims[0].name"),
        "{}",
        answer.body
    );
}

#[test]
fn pods_are_checked() {
    let server = started(&["--release", "1.36"]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = pod("a");
        change(&mut body["spec"]);
        body
    };
    let container = |name: &str| json!({"name": name, "image": "x"});
    let rows: [(Value, &str, &str, &str); 11] = [
        (
            with(&|spec| spec["containers"] = json!([container("m"), container("m")])),
            "spec.containers[1].name",
            "FieldValueDuplicate",
            "Duplicate value: \"m\"",
        ),
        (with(&|spec| spec["containers"] = json!([])), "spec.containers", "FieldValueRequired", "Required value"),
        (
            with(&|spec| spec["containers"][0]["image"] = json!("")),
            "spec.containers[0].image",
            "FieldValueRequired",
            "Required value",
        ),
        (
            with(&|spec| spec["resourceClaims"] = json!([{"name": "c"}])),
            "spec.resourceClaims[0]",
            "FieldValueInvalid",
            "Invalid value: {\"Name\":\"c\",\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one of: \
             `resourceClaimName`, `resourceClaimTemplateName`",
        ),
        (
            with(&|spec| {
                spec["resourceClaims"] =
                    json!([{"name": "c", "resourceClaimName": "x"}, {"name": "c", "resourceClaimName": "y"}]);
            }),
            "spec.resourceClaims[1].name",
            "FieldValueDuplicate",
            "Duplicate value: \"c\"",
        ),
        (
            with(&|spec| spec["containers"][0]["resources"] = json!({"claims": [{"name": "gpu"}]})),
            "spec.containers[0].resources.claims[0]",
            "FieldValueNotFound",
            "Not found: \"gpu\": must be one of the names in pod.spec.resourceClaims which is empty",
        ),
        (
            with(&|spec| spec["restartPolicy"] = json!("Sometimes")),
            "spec.restartPolicy",
            "FieldValueNotSupported",
            "Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\"",
        ),
        (
            with(&|spec| spec["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}])),
            "spec.containers[0].volumeMounts[0].name",
            "FieldValueNotFound",
            "Not found: \"v\"",
        ),
        (
            with(&|spec| spec["tolerations"] = json!([{"key": "a", "operator": "Exists", "value": "b"}])),
            "spec.tolerations[0].operator",
            "FieldValueInvalid",
            "Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        ),
        (
            with(&|spec| spec["schedulingGates"] = json!([{"name": "a.example/b"}, {"name": "a.example/b"}])),
            "spec.schedulingGates[1]",
            "FieldValueDuplicate",
            "Duplicate value: \"a.example/b\"",
        ),
        (
            with(&|spec| spec["nodeSelector"] = json!({"a b": "c"})),
            "spec.nodeSelector",
            "FieldValueInvalid",
            "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ];
    for (body, field, kind, message) in rows {
        let answer = ask(&server, "POST", PODS, &body);
        assert_eq!((answer.code, answer.causes()), (422, vec![(field, kind)]), "{body}");
        assert_eq!(answer.text("/details/causes/0/message"), message);
        assert_eq!(answer.text("/message"), format!("Pod \"a\" is invalid: {field}: {message}"));
    }
    let mut body = pod("a");
    body["spec"]["priorityClassName"] = json!("high");
    let message = "pods \"a\" is forbidden: no PriorityClass with name high was found";
    assert_eq!(ask(&server, "POST", PODS, &body).said(), (403, "Forbidden", message));
}

#[test]
fn options_are_checked() {
    let server = started(&[]);
    let long = format!("{CLAIMS}?fieldManager={}", "m".repeat(129));
    all_refused(
        &server,
        &[
            (
                "POST",
                &format!("{CLAIMS}?dryRun=Some"),
                claim("c"),
                422,
                "Invalid",
                "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
            ),
            (
                "POST",
                &long,
                claim("c"),
                422,
                "Invalid",
                "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes",
            ),
            (
                "POST",
                &format!("{CLAIMS}?fieldValidation=All"),
                claim("c"),
                422,
                "Invalid",
                "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"All\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            ),
            (
                "PATCH",
                &format!("{CLAIMS}/c?force=true"),
                json!({}),
                422,
                "Invalid",
                "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
            ),
            (
                "GET",
                &format!("{PODS}?resourceVersionMatch=Exact"),
                Value::Null,
                422,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "GET",
                &format!("{PODS}?watch=1&resourceVersionMatch=NotOlderThan"),
                Value::Null,
                422,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            (
                "GET",
                &format!("{PODS}?sendInitialEvents=true"),
                Value::Null,
                422,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
            (
                "GET",
                &format!("{PODS}?limit=many"),
                Value::Null,
                400,
                "BadRequest",
                "strconv.ParseInt: parsing \"many\": invalid syntax",
            ),
            (
                "GET",
                &format!("{PODS}?resourceVersion=new"),
                Value::Null,
                422,
                "Invalid",
                "pods \"\" is invalid: resourceVersion: Invalid value: \"new\": strconv.ParseUint: parsing \"new\": invalid syntax",
            ),
            (
                "DELETE",
                &format!("{CLAIMS}/c?propagationPolicy=Never"),
                Value::Null,
                422,
                "Invalid",
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Never\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            ),
            (
                "GET",
                &format!("{PODS}?continue=e30"),
                Value::Null,
                400,
                "BadRequest",
                "invalid continue token: continue key is not valid: server does not recognize this encoded version ",
            ),
        ],
    );
    let apply = send(&server, "PATCH", &format!("{CLAIMS}/c"), &["Content-Type: application/apply-patch+yaml"], "{}");
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
    assert_eq!(apply.said(), (422, "Invalid", message));
}

#[test]
fn media_types_are_checked() {
    let server = started(&[]);
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let text = send(&server, "POST", CLAIMS, &["Content-Type: text/plain"], "{}");
    let message = format!("the body of the request was in an unknown format - accepted media types include: {types}");
    assert_eq!(text.said(), (415, "UnsupportedMediaType", message.as_str()));
    let html = send(&server, "GET", PODS, &["Accept: text/html"], "");
    assert_eq!(
        html.said(),
        (406, "NotAcceptable", format!("only the following media types are accepted: {types}").as_str())
    );
    let yaml =
        send(&server, "POST", "/api/v1/nodes", &["Content-Type: application/yaml"], "metadata: {name: by-yaml}\n");
    assert_eq!((yaml.code, yaml.text("/metadata/name")), (201, "by-yaml"));
    let form = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let metadata = send(&server, "GET", "/api/v1/nodes/by-yaml", &[form], "");
    assert_eq!((metadata.text("/kind"), metadata.body.get("status")), ("PartialObjectMetadata", None));
}

#[test]
fn bodies_are_read_as_by_go() {
    let server = started(&[]);
    let begin = "the object provided is unrecognized (must be of type ResourceClaim): couldn't get version/kind; json parse error: ";
    for (body, problem, summary) in [
        ("", "unexpected end of JSON input", "<empty>"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string", "{\"a\":1,}"),
        ("{\"a\" 1}", "invalid character '1' after object key", "{\"a\" 1}"),
        ("{\"a\":[1 2]}", "invalid character '2' after array element", "{\"a\":[1 2]}"),
        ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')", "{\"a\":tru}"),
        ("nil", "invalid character 'i' in literal null (expecting 'u')", "6e696c"),
        ("{} {}", "invalid character '{' after top-level value", "{} {}"),
        (
            "{\"metadata\":{\"name\":\"a-long-one\"",
            "unexpected end of JSON input",
            "{\"metadata\":{\"name\":\"a-long-on ...",
        ),
    ] {
        let answer = send(&server, "POST", CLAIMS, &["Content-Type: application/json"], body);
        assert_eq!(answer.said(), (400, "BadRequest", format!("{begin}{problem} ({summary})").as_str()), "{body}");
    }
    let of = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "c"}});
    all_refused(
        &server,
        &[
            (
                "POST",
                CLAIMS,
                of("v1", "Pod"),
                400,
                "BadRequest",
                "Pod in version \"v1\" cannot be handled as a ResourceClaim: converting (v1.Pod) to (resource.ResourceClaim): unknown conversion",
            ),
            (
                "POST",
                CLAIMS,
                of("v1", "Claim"),
                400,
                "BadRequest",
                "Claim in version \"v1\" cannot be handled as a ResourceClaim: no kind \"Claim\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            ),
            (
                "POST",
                CLAIMS,
                of("resource.k8s.io/v1beta1", "ResourceClaim"),
                400,
                "BadRequest",
                "the API version in the data (resource.k8s.io/v1beta1) does not match the expected API version (resource.k8s.io/v1)",
            ),
            (
                "PUT",
                &format!("{CLAIMS}/d"),
                claim("c"),
                400,
                "BadRequest",
                "the name of the object (c) does not match the name on the URL (d)",
            ),
        ],
    );
}

#[test]
fn metadata_is_checked() {
    let server = started(&[]);
    let with = |field: &str, value: Value| {
        let mut body = claim("c");
        body["metadata"][field] = value;
        body
    };
    for (body, field) in [
        (with("labels", json!({"a": "b c"})), "metadata.labels"),
        (with("annotations", json!({"a b": ""})), "metadata.annotations"),
        (with("finalizers", json!(["mine"])), "metadata.finalizers[0]"),
        (
            with("ownerReferences", json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}])),
            "metadata.ownerReferences.uid",
        ),
    ] {
        let answer = ask(&server, "POST", CLAIMS, &body);
        assert_eq!((answer.code, answer.causes()), (422, vec![(field, "FieldValueInvalid")]), "{body}");
    }
    assert_eq!(ask(&server, "POST", CLAIMS, &with("finalizers", json!(["a.example/b"]))).code, 201);
    assert_eq!(ask(&server, "DELETE", &format!("{CLAIMS}/c"), &Value::Null).code, 200);
    let more = json!({"metadata": {"finalizers": ["a.example/b", "a.example/c"]}});
    let message = "ResourceClaim.resource.k8s.io \"c\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if \
        the object is being deleted, found new finalizers []string{\"a.example/c\"}";
    assert_eq!(ask(&server, "PATCH", &format!("{CLAIMS}/c"), &more).said(), (422, "Invalid", message));
}

#[test]
fn specifications_that_are_kept_are_shown_as_go_has_them() {
    let server = started(&["--release", "1.36"]);
    let templates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": claim("c")["spec"]}});
    let stored = ask(&server, "POST", templates, &template);
    assert_eq!((stored.code, &stored.body["spec"]["metadata"]), (201, &json!({})));
    let change = json!({"spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": []}}}});
    let message = "ResourceClaimTemplate.resource.k8s.io \"t\" is invalid: spec: Invalid value: {\"labels\":{\"a\":\"b\"},\"Spec\":\
        {\"Devices\":{\"Requests\":[],\"Constraints\":null,\"Config\":null}}}: field is immutable";
    assert_eq!(ask(&server, "PATCH", &format!("{templates}/t"), &change).said(), (422, "Invalid", message));
    let taints = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "b"}]);
    let message = "Node \"n1\" is invalid: spec.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"b\",\"Effect\":\"NoSchedule\",\
        \"TimeAdded\":null}: taints must be unique by key and effect pair";
    let answer = ask(&server, "PATCH", "/api/v1/nodes/n1", &json!({"spec": {"taints": taints}}));
    assert_eq!(answer.said(), (422, "Invalid", message));
}

#[test]
fn applies_conflict_with_whoever_wrote() {
    let server = started(&[]);
    let mut body = claim("c");
    body["metadata"]["labels"] = json!({"a": "1"});
    let stored = ask(&server, "POST", CLAIMS, &body);
    let managers = stored.body["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(
        (managers.len(), &managers[0]["manager"], &managers[0]["operation"]),
        (1, &json!("test"), &json!("Update"))
    );
    assert_eq!(managers[0]["fieldsV1"]["f:metadata"], json!({"f:labels": {".": {}, "f:a": {}}}));
    let config = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"labels": {"a": "2", "b": "1"}}});
    let apply = |query: &str| {
        let path = format!("{CLAIMS}/c?fieldManager=me{query}");
        send(&server, "PATCH", &path, &["Content-Type: application/apply-patch+yaml"], &config.to_string())
    };
    let refused = apply("");
    assert_eq!((refused.code, refused.causes()), (409, vec![(".metadata.labels.a", "FieldManagerConflict")]));
    let time = managers[0]["time"].as_str().unwrap();
    let message = format!(
        "Apply failed with 1 conflict: conflict with \"test\" using resource.k8s.io/v1 at {time}: .metadata.labels.a"
    );
    assert_eq!(refused.text("/message"), message);
    let forced = apply("&force=true");
    assert_eq!((forced.code, &forced.body["metadata"]["labels"]), (200, &json!({"a": "2", "b": "1"})));
    let managers = forced.body["metadata"]["managedFields"].as_array().unwrap();
    let of =
        |index: usize| (managers[index]["manager"].as_str().unwrap(), managers[index]["operation"].as_str().unwrap());
    assert_eq!((of(0), of(1)), (("me", "Apply"), ("test", "Update")));
    assert_eq!(managers[1]["fieldsV1"]["f:metadata"], json!({"f:labels": {}}));
}

#[test]
fn namespaces_go_when_nothing_is_in_them() {
    let server = started(&[]);
    let message = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    assert_eq!(ask(&server, "DELETE", "/api/v1/namespaces/default", &Value::Null).said(), (403, "Forbidden", message));
    let made = ask(&server, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
    assert_eq!(made.body["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!(made.body["spec"], json!({"finalizers": ["kubernetes"]}));
    let claims = CLAIMS.replace("default", "n");
    let empty = ask(&server, "POST", &claims, &json!({"metadata": {"name": "c"}}));
    assert_eq!((empty.code, &empty.body["spec"]), (201, &json!({"devices": {}})));
    let going = ask(&server, "DELETE", "/api/v1/namespaces/n", &Value::Null);
    assert_eq!((going.code, going.text("/status/phase")), (200, "Terminating"));
    let refused = ask(&server, "POST", &claims, &claim("d"));
    let message = "resourceclaims.resource.k8s.io \"d\" is forbidden: unable to create new content in namespace n because it is being \
        terminated";
    assert_eq!(refused.said(), (403, "Forbidden", message));
    assert_eq!(refused.causes(), [("metadata.namespace", "NamespaceTerminating")]);
    assert_eq!(ask(&server, "DELETE", &format!("{claims}/c"), &Value::Null).code, 200);
    assert_eq!(ask(&server, "GET", "/api/v1/namespaces/n", &Value::Null).code, 404);
}

#[test]
fn bindings_and_evictions_name_their_pod() {
    let server = started(&[]);
    assert_eq!(ask(&server, "POST", PODS, &pod("a")).code, 201);
    let binding = |name: &str| json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
    all_refused(
        &server,
        &[
            (
                "POST",
                &format!("{PODS}/a/binding"),
                binding("b"),
                400,
                "BadRequest",
                "name in URL does not match name in Binding object",
            ),
            ("POST", &format!("{PODS}/b/binding"), binding("b"), 404, "NotFound", "pods \"b\" not found"),
            (
                "POST",
                &format!("{PODS}/a/eviction"),
                json!({"apiVersion": "policy/v1", "kind": "Eviction"}),
                400,
                "BadRequest",
                "name in URL does not match name in Eviction object",
            ),
        ],
    );
    assert_eq!(ask(&server, "POST", &format!("{PODS}/a/binding"), &binding("a")).code, 201);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    assert_eq!(ask(&server, "POST", &format!("{PODS}/a/eviction"), &eviction).said().0, 201);
    let going = ask(&server, "GET", &format!("{PODS}/a"), &Value::Null).body;
    assert_eq!(
        (going["metadata"]["deletionGracePeriodSeconds"].clone(), going["metadata"]["generation"].clone()),
        (json!(30), json!(2))
    );
}

#[test]
fn old_tokens_and_versions_have_expired() {
    let server = started(&["--history", "1"]);
    for name in ["a", "b", "c"] {
        assert_eq!(ask(&server, "POST", CLAIMS, &claim(name)).code, 201);
    }
    let first = ask(&server, "GET", &format!("{CLAIMS}?limit=1"), &Value::Null);
    assert_eq!(first.body["metadata"]["remainingItemCount"], json!(2));
    let token = first.text("/metadata/continue").to_owned();
    for name in ["d", "e"] {
        assert_eq!(ask(&server, "POST", CLAIMS, &claim(name)).code, 201);
    }
    let expired = ask(&server, "GET", &format!("{CLAIMS}?limit=1&continue={token}"), &Value::Null);
    assert_eq!((expired.code, expired.text("/reason")), (410, "Expired"));
    assert!(
        expired
            .text("/message")
            .starts_with("The provided continue parameter is too old to display a consistent list result.")
    );
    let token = expired.text("/metadata/continue");
    let rest = ask(&server, "GET", &format!("{CLAIMS}?continue={token}"), &Value::Null);
    let names: Vec<&Value> =
        rest.body["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["b", "c", "d", "e"], "the list goes on, as far as it is known");
    let watch = ask(&server, "GET", &format!("{CLAIMS}?watch=1&resourceVersion=1&timeoutSeconds=1"), &Value::Null);
    assert!(
        watch.head.contains("chunked") && watch.body.to_string().contains("too old resource version: 1 ("),
        "{watch:?}"
    );
    let future = ask(&server, "GET", &format!("{CLAIMS}?resourceVersion=99999"), &Value::Null);
    assert_eq!((future.code, future.text("/reason")), (504, "Timeout"));
    assert!(future.text("/message").starts_with("Timeout: Too large resource version: 99999, current: "));
}

#[test]
fn nominations_end_with_the_binding() {
    let server = started(&["--release", "1.36"]);
    assert_eq!(ask(&server, "POST", PODS, &pod("a")).code, 201);
    let status = format!("{PODS}/a/status");
    assert_eq!(ask(&server, "PATCH", &status, &json!({"status": {"nominatedNodeName": "n1"}})).code, 200);
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    assert_eq!(ask(&server, "POST", &format!("{PODS}/a/binding"), &binding).code, 201);
    let bound = ask(&server, "GET", &format!("{PODS}/a"), &Value::Null).body;
    assert_eq!(bound["status"].get("nominatedNodeName"), None);
    let again = ask(&server, "PATCH", &status, &json!({"status": {"nominatedNodeName": "n2"}}));
    assert_eq!((again.code, again.causes()), (422, vec![("status.nominatedNodeName", "FieldValueForbidden")]));
}

#[test]
fn a_pod_has_the_priority_of_its_class() {
    let server = stand_in::Server::start_with(&["--disable-admission-plugins", "ServiceAccount"]).unwrap();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, more: Value| {
        let mut class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
        class.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(ask(&server, "POST", classes, &class).code, 201);
    };
    let admitted = |name: &str, fields: Value| {
        let mut body = pod(name);
        body["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = ask(&server, "POST", PODS, &body);
        let field = |field: &str| answer.body["spec"][field].clone();
        match answer.code {
            201 => json!([field("priorityClassName"), field("priority"), field("preemptionPolicy")]),
            _ => json!(answer.text("/message")),
        }
    };
    assert_eq!(admitted("a", json!({})), json!([null, 0, "PreemptLowerPriority"]));
    class("high", 100, json!({"preemptionPolicy": "Never"}));
    class("usual", 7, json!({"globalDefault": true}));
    assert_eq!(admitted("b", json!({})), json!(["usual", 7, "PreemptLowerPriority"]));
    assert_eq!(admitted("c", json!({"priorityClassName": "high"})), json!(["high", 100, "Never"]));
    assert_eq!(admitted("d", json!({"priorityClassName": "system-node-critical"}))[1], 2_000_001_000);
    let refused = "pods \"e\" is forbidden: no PriorityClass with name none was found";
    assert_eq!(admitted("e", json!({"priorityClassName": "none"})), refused);
    let refused = "pods \"f\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller \
                   computed 100 from the given PriorityClass name";
    assert_eq!(admitted("f", json!({"priorityClassName": "high", "priority": 5})), refused);
}
