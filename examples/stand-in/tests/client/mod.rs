//! A client that sends one request on a connection of its own.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use stand_in::Server;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

/// Answer of the server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns code, reason and message.
    pub(crate) fn said(&self) -> (u16, &str, &str) {
        (self.code, self.text("/reason"), self.text("/message"))
    }

    /// Returns field and type of each cause.
    pub(crate) fn causes(&self) -> Vec<(&str, &str)> {
        let causes = self.body.pointer("/details/causes").and_then(Value::as_array);
        causes
            .into_iter()
            .flatten()
            .map(|cause| (cause["field"].as_str().unwrap_or_default(), cause["reason"].as_str().unwrap_or_default()))
            .collect()
    }
}

/// Sends a request with headers of its own.
pub(crate) fn send(server: &Server, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut connection = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let (headers, length) = ([headers, &["", ""]].concat().join("\r\n"), body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: stand-in\r\nConnection: close\r\nUser-Agent: test/1\r\nContent-Length: {length}\r\n{headers}"
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head[9..12].parse().unwrap();
    Answer { code, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or_else(|_| json!(body)) }
}

/// Sends JSON.
pub(crate) fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let form = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(server, method, path, &[&format!("Content-Type: {form}")], &body)
}

/// Starts a server with a service account and a node.
pub(crate) fn started(args: &[&str]) -> Server {
    let server = Server::start_with(args).unwrap();
    let account = json!({"metadata": {"name": "default"}});
    assert_eq!(ask(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", &account).code, 201);
    assert_eq!(ask(&server, "POST", "/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).code, 201);
    server
}

pub(crate) fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "m", "image": "x"}]}})
}

pub(crate) fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
}
