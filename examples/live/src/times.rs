//! Times of year 9999, which an API server stores and `k8s_openapi` can't hold. They are read as the last instant that can be
//! held, in every answer and every event of a watch. An object with such a time is not written back: neither by a PUT, nor by
//! a patch with the list that it is in.

use dra_attrs::{has_saturated_time, saturate_times};
use futures_util::FutureExt;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Beginnings of texts that may be times which can't be held.
const SUSPICIOUS: [&str; 3] = ["\"9999-", "\"10000-", "\"-0"];

/// Text of an object that may have a time which was not read as it is stored.
const LAST_INSTANT: &str = "\"9999-12-30T22:00:00";

/// Returns the answer to a write of an object that may have another time in the store: it is not sent.
pub(super) fn refused(request: &Request<Body>) -> Option<(StatusCode, Bytes)> {
    let is_change = [Method::PUT, Method::PATCH].contains(request.method());
    (is_change && has_time_of_its_own(request.body())).then(refusal)
}

fn has_time_of_its_own(body: &Body) -> bool {
    let bytes = body.try_clone().and_then(|body| body.collect_bytes().now_or_never()?.ok()).unwrap_or_default();
    contains(&bytes, LAST_INSTANT)
        && serde_json::from_slice(&bytes).is_ok_and(|object: Value| has_saturated_time(&object))
}

fn refusal() -> (StatusCode, Bytes) {
    let message =
        "not written: the object has a time at the end of year 9999, which this program can't write back as it is";
    let code = StatusCode::UNPROCESSABLE_ENTITY;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Invalid", "code": code.as_u16()});
    (code, status.to_string().into())
}

/// Event of a watch. The type comes first, as servers write it and readers want it.
#[derive(Serialize, Deserialize)]
struct WatchLine {
    #[serde(rename = "type")]
    kind: Value,
    object: Value,
}

/// Returns lines with times that can be held.
pub(super) fn read(lines: Vec<u8>) -> Bytes {
    if !SUSPICIOUS.iter().any(|suspicious| contains(&lines, suspicious)) {
        return lines.into();
    }
    lines.split_inclusive(|byte| *byte == b'\n').flat_map(read_line).collect()
}

fn read_line(line: &[u8]) -> Vec<u8> {
    let as_it_is = || line.to_vec();
    let written = if let Ok(mut event) = serde_json::from_slice::<WatchLine>(line) {
        if saturate_times(&mut event.object) == 0 {
            return as_it_is();
        }
        serde_json::to_vec(&event)
    } else if let Ok(mut object) = serde_json::from_slice::<Value>(line) {
        if saturate_times(&mut object) == 0 {
            return as_it_is();
        }
        serde_json::to_vec(&object)
    } else {
        return as_it_is();
    };
    let mut written = written.unwrap_or_else(|_| as_it_is());
    if line.ends_with(b"\n") && !written.ends_with(b"\n") {
        written.push(b'\n');
    }
    written
}

/// Returns true if a text contains a part, or is no text: then reading it will tell.
fn contains(text: &[u8], part: &str) -> bool {
    str::from_utf8(text).map_or(true, |text| text.contains(part))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::read;

    fn read_text(lines: &str) -> String {
        String::from_utf8(read(lines.as_bytes().to_vec()).to_vec()).unwrap()
    }

    #[test]
    fn late_times_are_read_in_objects_and_in_events() {
        let late = r#"{"spec":{"taints":[{"timeAdded":"9999-12-31T23:59:59Z"}]}}"#;
        let held = r#"{"spec":{"taints":[{"timeAdded":"9999-12-30T22:00:00Z"}]}}"#;
        assert_eq!(read_text(late), held);
        let event = |object: &str| format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        let other = event(r#"{"metadata":{"annotations":{"until":"9999-12-31T23:59:59Z"}}}"#);
        let lines = [event(late), other.clone(), event(held)].concat();
        assert_eq!(read_text(&lines), [event(held), other, event(held)].concat());
    }

    #[test]
    fn everything_else_is_passed_on_byte_for_byte() {
        for lines in ["", "\n", "{ \"a\": 1 }\n", "\"9999-\n", "{\"x\": \"9999-12-31T23:59:59Z\" }", "not json \"9999-"]
        {
            assert_eq!(read_text(lines), lines);
        }
        assert_eq!(read(b"\xff\xfe\n".to_vec()), b"\xff\xfe\n".as_slice());
    }
}
