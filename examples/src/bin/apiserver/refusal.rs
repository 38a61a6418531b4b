//! Answers that are a "no": a `Status` with code, reason and details, in the words of Kubernetes.

use dra_attrs::FieldErrors;
use serde_json::{Value, json};

use super::kinds::Kind;

/// A "no", as the client gets it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
    /// Seconds after which the client may try again.
    pub(crate) retry_after: Option<u32>,
    /// Reason for which the handler of the request ends without an answer.
    pub(crate) stop: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: json!({}), retry_after: None, stop: None }
    }

    fn about(self, kind: &Kind, name: &str) -> Self {
        Self { details: json!({"group": kind.group, "kind": kind.plural, "name": name}), ..self }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Nothing is at the path.
    pub(crate) fn no_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource())).about(kind, name)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.resource())).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, detail: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {detail}", kind.resource());
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// The object is not of the version that the client has read.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let detail = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, detail)
    }

    /// The object is another one than the client means.
    pub(crate) fn precondition(kind: &Kind, name: &str, what: &str, wanted: &str, stored: &str) -> Self {
        let detail = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {stored}");
        Self::conflict(kind, name, &detail)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, detail: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {detail}", kind.resource());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &FieldErrors) -> Self {
        let cause = |error: &dra_attrs::FieldError| {
            let message = error.to_string();
            let message = message.strip_prefix(&format!("{}: ", error.field)).unwrap_or(&message).to_owned();
            json!({"reason": error.r#type, "message": message, "field": error.field})
        };
        let causes: Vec<Value> = errors.iter().map(cause).collect();
        let message = format!("{}.{} {name:?} is invalid: {}", kind.name, kind.group, errors.whole());
        let message = if kind.group.is_empty() { message.replacen(". ", " ", 1) } else { message };
        let mut refusal = Self::new(422, "Invalid", message).about(kind, name);
        if let Some(details) = refusal.details.as_object_mut() {
            details.insert("kind".to_owned(), kind.name.into());
            details.insert("causes".to_owned(), causes.into());
        }
        refusal
    }

    /// The history does not reach back as far as a watch wants.
    pub(crate) fn expired(wanted: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {wanted} ({oldest})"))
    }

    /// The handler of a request ends in the middle: the client gets no answer, and the connection is cut.
    pub(crate) fn stop(reason: String) -> Self {
        Self { stop: Some(reason), ..Self::new(500, "InternalError", "the handler of the request has ended") }
    }

    pub(crate) fn too_many(message: &str) -> Self {
        Self { retry_after: Some(1), ..Self::new(429, "TooManyRequests", message) }
    }

    pub(crate) fn body(&self) -> Value {
        let mut details = self.details.clone();
        if let (Some(seconds), Some(details)) = (self.retry_after, details.as_object_mut()) {
            details.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": details, "code": self.code,
        })
    }
}

/// Returns the answer of a request that has nothing else to return.
pub(crate) fn success(kind: &Kind, name: &str, uid: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"group": kind.group, "kind": kind.plural, "name": name, "uid": uid},
    })
}
