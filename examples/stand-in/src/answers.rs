//! Answers: objects, lists, tables and refusals over HTTP.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::program::now;
use crate::refusal::Refusal;
use crate::request::Target;
use crate::shown::Answered;
use crate::table::table;

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Form in which objects are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Table,
    /// Metadata alone.
    Metadata,
}

/// Returns the metadata of an object as an object.
pub(crate) fn metadata_of(object: &Value) -> Answered<'static> {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    Answered { object: Cow::Owned(object), is_item: false }
}

/// List of metadata as it is answered.
#[derive(Debug, Serialize)]
pub(crate) struct MetadataList {
    #[serde(flatten)]
    pub(crate) list: Value,
    pub(crate) items: Vec<Answered<'static>>,
}

/// List of objects as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListAnswer<'o> {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) metadata: Value,
    pub(crate) items: Vec<Answered<'o>>,
}

pub(crate) fn table_response<'a>(
    target: &Target,
    objects: impl IntoIterator<Item = &'a Arc<Value>>,
    metadata: &Value,
) -> Response<Body> {
    json_response(200, &table(target.kind, objects.into_iter().map(|object| &**object), metadata, now()), &[])
}

pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = json_response(refusal.code, &refusal.body(), &[]);
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn json_response(code: u16, value: &impl Serialize, warnings: &[String]) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, "application/json", serde_json::to_vec(value).unwrap_or_default().into());
    for warning in warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(WARNING, header);
        }
    }
    response
}

pub(crate) fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {});
    let mut response = Response::new(BodyExt::boxed_unsync(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
