//! Media types: what a client sends, and what it takes.

use crate::answers::Form;
use crate::refusal::Refusal;

/// Types of bodies, as a real server lists them. Protobuf is refused here.
const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Returns the form of the answer: the first that the client takes and this server has. Protobuf is answered as JSON, as
/// `Content-Type` says.
///
/// # Errors
/// The client takes none of them.
pub(crate) fn accepted(header: &str, is_read: bool) -> Result<Form, Refusal> {
    let mut parts = header.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
    if parts.peek().is_none() {
        return Ok(Form::Object);
    }
    parts.find_map(|part| form_of(part, is_read)).ok_or_else(|| {
        Refusal::new(406, "NotAcceptable", format!("only the following media types are accepted: {TYPES}"))
    })
}

fn form_of(part: &str, is_read: bool) -> Option<Form> {
    let mut parameters = part.split(';').map(str::trim);
    let media = parameters.next().unwrap_or_default();
    if !["application/json", "application/vnd.kubernetes.protobuf", "application/*", "*/*"].contains(&media) {
        return None;
    }
    let of = |name: &str| part.split(';').filter_map(|it| it.trim().split_once('=')).find(|(key, _)| *key == name);
    match (of("as").map(|(_, form)| form), of("g").map(|(_, group)| group)) {
        (None, _) => Some(Form::Object),
        (Some("Table"), Some("meta.k8s.io")) if of("v").is_some_and(|(_, version)| version == "v1") => {
            Some(Form::Table)
        }
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io")) if is_read => {
            Some(Form::Metadata)
        }
        _ => None,
    }
}

/// Checks the type of a body with an object.
///
/// # Errors
/// A real server does not read the type, or this one does not.
pub(crate) fn check_body(header: &str) -> Result<Body, Refusal> {
    match header.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" | "*/*" => Ok(Body::Json),
        "application/yaml" => Ok(Body::Yaml),
        "application/vnd.kubernetes.protobuf" => {
            Err(Refusal::new(415, "UnsupportedMediaType", "this stand-in reads no protobuf: send JSON or YAML"))
        }
        _ => {
            let message =
                format!("the body of the request was in an unknown format - accepted media types include: {TYPES}");
            Err(Refusal::new(415, "UnsupportedMediaType", message))
        }
    }
}

/// Form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Json,
    Yaml,
}
