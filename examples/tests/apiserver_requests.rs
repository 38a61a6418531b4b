//! Requests to the program `apiserver` that are drawn: method, path, query, form and body. Each is answered, none by 500.
//!
//! `REQUESTS=100000 cargo test -p examples --all-features --test apiserver_requests` draws so many; `REQUESTS_SEED` chooses others.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use stand_in::StandIn;
use stand_in::background::get;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const PATHS: [&str; 18] = [
    "/api/v1/nodes",
    "/api/v1/nodes/one",
    "/api/v1/nodes/one/status",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/one",
    "/api/v1/namespaces/default/pods/one/status",
    "/api/v1/namespaces/default/pods/one/binding",
    "/api/v1/namespaces/default",
    "/api/v1/pods",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/one",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/one/status",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/resourceslices/one",
    "/apis/resource.k8s.io/v1/devicetaintrules/one",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/one",
    "/openapi/v3",
    "/%2e%2e//apis/%00/v1",
];

const QUERIES: [&str; 12] = [
    "watch=1&timeoutSeconds=0",
    "watch=1&timeoutSeconds=0&resourceVersion=1",
    "watch=1&timeoutSeconds=0&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
    "resourceVersion=18446744073709551616",
    "labelSelector=app%20in%20(a,b),!c,d!=e",
    "fieldSelector=spec.nodeName=one,metadata.name!=two",
    "fieldSelector=,=,==",
    "dryRun=All",
    "fieldManager=test&force=true",
    "fieldValidation=Strict",
    "gracePeriodSeconds=0",
    "gracePeriodSeconds=-1&%ff=%zz&&=",
];

const FORMS: [&str; 6] = [
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
];

const BODIES: [&str; 12] = [
    r#"{"metadata": {"name": "one"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}"#,
    r#"{"metadata": {"name": "one", "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#,
    r#"{"metadata": {"name": "one"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}"#,
    r#"{"metadata": {"name": "one"}, "spec": {"driver": "d.example", "nodeName": "one", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d", "capacity": {"m": {"value": "1Gi"}}}]}}"#,
    r#"{"metadata": {"resourceVersion": "3", "uid": "x"}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "reservedFor": [{"resource": "pods", "name": "one", "uid": "u"}]}}"#,
    r#"{"status": {"conditions": [{"$patch": "delete", "type": "Ready"}], "$setElementOrder/conditions": [{"type": "Ready"}]}}"#,
    r#"[{"op": "test", "path": "/metadata/name", "value": "one"}, {"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}, {"op": "move", "from": "/spec", "path": "/spec/spec"}, {"op": "remove", "path": "/status/conditions/-"}]"#,
    r#"{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": {"kind": "Node", "name": "one"}}"#,
    r#"{"metadata": {"finalizers": ["a.example/b"], "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": null}"#,
    r#"{"preconditions": {"uid": "x"}, "gracePeriodSeconds": 99999999999999999999, "dryRun": ["All"]}"#,
    "apiVersion: v1\nkind: Node\nmetadata: &m {name: one, labels: *m}\n",
    "",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// Returns a body as it is, without some bytes, with bytes of another one, with other bytes, or very deep.
    fn body(&mut self) -> Vec<u8> {
        let mut body = self.one_of(&BODIES).as_bytes().to_vec();
        for _ in 0..self.below(3) {
            let (from, length) = (self.below(body.len() + 1), self.below(9));
            let end = body.len().min(from + length);
            match self.below(4) {
                0 => drop(body.drain(from..end)),
                1 => drop(body.splice(from..end, self.one_of(&BODIES).bytes())),
                2 => drop(
                    body.splice(from..end, self.one_of(&["null", "[]", "{}", "-1", "1e999", "\"\"", "\u{0}"]).bytes()),
                ),
                _ => drop(body.splice(from..end, self.one_of(&["[", "{\"a\":"]).repeat(10_000).bytes())),
            }
        }
        body
    }
}

/// Sends a request on a connection of its own. Returns the code, and the body of the answer.
fn send(address: &str, method: &str, target: &str, form: &str, body: &[u8]) -> (u16, String) {
    let mut connection = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: apiserver\r\nConnection: close\r\nContent-Type: {form}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    // A body that nobody reads may end the connection early, after the answer.
    let _ = connection.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let code = answer.get(9..12).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (code.unwrap_or_else(|| panic!("no answer to {method} {target}")), body.unwrap_or_default())
}

#[test]
fn each_drawn_request_is_answered() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (count, seed) = (number("REQUESTS").unwrap_or(3000), number("REQUESTS_SEED").unwrap_or(1));
    let server = StandIn::start(&["--seed", "1"]);
    let address = server.url.trim_start_matches("http://");
    let mut dice = Dice(seed);
    let mut stored = 0;
    for at in 0..count {
        let (method, path, form) = (dice.one_of(&METHODS), dice.one_of(&PATHS), dice.one_of(&FORMS));
        let queries: Vec<&str> = (0..dice.below(3)).map(|_| dice.one_of(&QUERIES)).collect();
        let (target, body) = (format!("{path}?{}", queries.join("&")), dice.body());
        let (code, answer) = send(address, method, &target, form, &body);
        let request = || format!("request {at}: {method} {target} {form}\n{}", String::from_utf8_lossy(&body));
        assert!((200..600).contains(&code) && code != 500, "{code}: {}", request());
        stored += u64::from(code == 201 || (code == 200 && ["PUT", "PATCH"].contains(&method)));
        if code >= 400 && method != "HEAD" {
            let status: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}\n{}", request()));
            assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &code.into()), "{}", request());
        }
    }
    assert!(stored > count / 100, "{stored} of {count} requests stored something");
    assert!(get(address, "/healthz").ends_with("\r\n\r\nok"));
}
