//! Work and answers of the server are bounded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::{CLAIMS, ask, claim, send, started};

fn merged(count: usize) -> Duration {
    let server = started(&[]);
    let taints: Vec<Value> =
        (0..count).map(|index| json!({"key": format!("a.example/{index}"), "effect": "NoSchedule"})).collect();
    let order: Vec<Value> = (0..count).rev().map(|index| json!({"key": format!("a.example/{index}")})).collect();
    let patch = json!({"spec": {"taints": taints, "$setElementOrder/taints": order}}).to_string();
    let begin = Instant::now();
    let form = ["Content-Type: application/strategic-merge-patch+json"];
    let answer = send(&server, "PATCH", "/api/v1/nodes/n1", &form, &patch);
    assert_eq!(answer.code, 200, "{:?}", answer.said());
    let stored = answer.body["spec"]["taints"].as_array().unwrap();
    assert_eq!(stored.len(), count + 1, "one for the node that is not ready");
    assert_eq!(stored[0]["key"], json!(format!("a.example/{}", count - 1)));
    begin.elapsed()
}

#[test]
fn a_list_is_merged_in_little_more_than_its_length() {
    let (small, large) = (merged(1_000), merged(8_000));
    // Eight times as much, with room for a machine that has other things to do; the square would be 64 times.
    assert!(large < small * 40 + Duration::from_secs(1), "{small:?}, {large:?}");
}

#[test]
fn a_refusal_is_no_larger_than_a_megabyte() {
    let server = started(&[]);
    let mut body = claim("c");
    let selector = |_| json!({"cel": {"expression": vec!["a"; 2500].join("||")}});
    body["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = (0..16).map(selector).collect();
    let text = body.to_string();
    assert!(text.len() > 100_000);
    let refused = send(&server, "POST", CLAIMS, &["Content-Type: application/json"], &text);
    assert_eq!((refused.code, refused.text("/reason")), (422, "Invalid"));
    assert!(refused.body.to_string().len() < 1 << 20, "{} bytes", refused.body.to_string().len());
}

#[test]
fn an_answer_waits_as_long_as_it_shall() {
    let server = started(&["--delay-ms", "300"]);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ask(&server, "GET", "/api/v1/nodes/n1", &Value::Null).code, 200));
        }
    });
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_list_is_cut_at_the_chunk_whatever_is_asked() {
    let server = started(&["--chunk", "2"]);
    for name in ["a", "b", "c"] {
        assert_eq!(ask(&server, "POST", CLAIMS, &claim(name)).code, 201);
    }
    for (query, length) in [("", 2), ("?limit=500", 2), ("?limit=1", 1)] {
        let list = ask(&server, "GET", &format!("{CLAIMS}{query}"), &Value::Null).body;
        assert_eq!(list["items"].as_array().unwrap().len(), length, "{query}");
        assert_eq!(list["metadata"]["remainingItemCount"], json!(3 - length));
    }
    let token = ask(&server, "GET", CLAIMS, &Value::Null).text("/metadata/continue").to_owned();
    let rest = ask(&server, "GET", &format!("{CLAIMS}?continue={token}"), &Value::Null).body;
    assert_eq!(rest["items"][0]["metadata"]["name"], "c");
    assert_eq!(rest["metadata"].get("continue"), None);
    assert_eq!(ask(&server, "DELETE", CLAIMS, &Value::Null).body["items"].as_array().unwrap().len(), 3);
}
