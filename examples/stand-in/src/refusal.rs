//! Answers that are a "no": a `Status` with code, reason and details, in the words of Kubernetes.

use dra_attrs::FieldErrors;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object::Object;

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
        Self { code, reason, message: message.into(), details: Value::Null, retry_after: None, stop: None }
    }

    fn about(self, kind: &Kind, name: &str) -> Self {
        self.about_resource(kind.group, kind.plural, name)
    }

    /// The core group is not named.
    fn about_resource(self, group: &str, resource: &str, name: &str) -> Self {
        let mut details = json!({"kind": resource, "name": name});
        if !group.is_empty() {
            details.set_field("group", group);
        }
        Self { details, ..self }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Nothing is at the path.
    pub(crate) fn no_path() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: json!({}), ..Self::new(404, "NotFound", message) }
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

    /// The subresource of an object is not as the client expects.
    pub(crate) fn conflict_on(kind: &Kind, subresource: &str, name: &str, detail: &str) -> Self {
        let resource = format!("{}/{subresource}", kind.plural);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {detail}");
        Self::new(409, "Conflict", message).about_resource(kind.group, &resource, name)
    }

    /// The object is another one than the client means.
    pub(crate) fn precondition(kind: &Kind, name: &str, what: &str, wanted: &str, stored: &str) -> Self {
        let detail = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {stored}");
        Self::conflict(kind, name, &detail)
    }

    /// The object is another one than the client wants to delete. Upstream names the kind here.
    pub(crate) fn not_to_delete(kind: &Kind, name: &str, what: &str, wanted: &str, stored: &str) -> Self {
        let hint = match what {
            "UID" => "The object might have been deleted and then recreated",
            _ => "The object might have been modified",
        };
        let of = if kind.group.is_empty() { kind.name.to_owned() } else { format!("{}.{}", kind.name, kind.group) };
        let message = format!(
            "Operation cannot be fulfilled on {of} {name:?}: the {what} in the precondition ({wanted}) does not match the {what} \
            in record ({stored}). {hint}"
        );
        Self::new(409, "Conflict", message).about_resource(kind.group, kind.name, name)
    }

    /// The version that a list shall have is none that the server has come to.
    pub(crate) fn future_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let details = json!({"causes": [cause]});
        Self { details, retry_after: Some(1), ..Self::new(504, "Timeout", message) }
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
        refusal.details.set_field("kind", kind.name);
        refusal.details.set_field("causes", causes);
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
        if let Some(seconds) = self.retry_after {
            details.set_field("retryAfterSeconds", seconds);
        }
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !details.is_null() {
            body.set_field("details", details);
        }
        body
    }
}

/// Returns the answer of a request that has nothing else to return.
pub(crate) fn success(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"kind": kind.plural, "name": name, "uid": uid});
    if !kind.group.is_empty() {
        details.set_field("group", kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
