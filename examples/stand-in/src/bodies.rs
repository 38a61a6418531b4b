//! Bodies of requests.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use object_patches::syntax_error;
use serde_json::{Value, json};

use crate::refusal::Refusal;

/// Largest body of a request, as in the API server.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// Part of a larger body that is read and forgotten. A client that sends its body to the end reads the refusal then;
/// otherwise its connection may be cut before.
const MOST_FORGOTTEN: usize = 16 * 1024 * 1024;

/// Reads the body of a request.
pub(crate) async fn bytes_of(mut body: Incoming) -> Result<Bytes, Refusal> {
    match Limited::new(&mut body, MAX_BODY).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let mut forgotten = 0_usize;
            while let (true, Some(Ok(frame))) = (forgotten < MOST_FORGOTTEN, body.frame().await) {
                forgotten = forgotten.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            }
            Err(Refusal::new(413, "RequestEntityTooLarge", format!("limit is {MAX_BODY}")))
        }
        Err(error) => Err(Refusal::bad_request(error.to_string())),
    }
}

/// Reads the body of a request, which may be empty.
pub(crate) fn read(body: &[u8], kind: &str) -> Result<Value, Refusal> {
    if body.is_empty() { Ok(json!({})) } else { read_object(body, kind) }
}

/// Reads the object in the body of a request.
pub(crate) fn read_object(body: &[u8], kind: &str) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        // Deeper than this server reads, but JSON.
        let problem = syntax_error(body).unwrap_or_else(|| error.to_string());
        let summary = summary(body);
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {problem} \
             ({summary})"
        ))
    })
}

/// Reads an object in YAML.
pub(crate) fn read_yaml(body: &[u8]) -> Result<Value, Refusal> {
    serde_saphyr::from_str(&String::from_utf8_lossy(body)).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// Returns the beginning of a body, as text or in hexadecimal.
fn summary(body: &[u8]) -> String {
    let beginning = body.get(..30).unwrap_or(body);
    let mut text = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(beginning).into_owned(),
        Some(_) => beginning.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect(),
    };
    if body.len() > 30 {
        text.push_str(" ...");
    }
    text
}

fn hex_digit(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or('0')
}
