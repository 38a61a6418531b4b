//! Answers that are a "no": a `Status` with code, reason and details, in the words of Kubernetes.

use dra_attrs::FieldErrors;
use object_patches::{Conflict, Object, PatchError};
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::request::Target;

/// Largest number of causes in an answer.
const MOST_CAUSES: usize = 1000;

/// Largest size of a message. A real server has none; here 100 KB of text must not make megabytes of answer.
const LONGEST_MESSAGE: usize = 256 * 1024;

/// Largest size of the messages of all causes.
const LARGEST_CAUSES: usize = 512 * 1024;

/// A "no", as the client gets it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
    /// Token with which a list may go on all the same.
    continue_from: Option<Box<str>>,
    /// Seconds after which the client may try again.
    pub(crate) retry_after: Option<u32>,
    /// Reason for which the handler of the request ends without an answer.
    pub(crate) stop: Option<Box<str>>,
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            continue_from: None,
            retry_after: None,
            stop: None,
        }
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

    /// The user has no right to the request.
    pub(crate) fn no_right(target: &Target, message: String) -> Self {
        let refusal =
            Self::new(403, "Forbidden", message).about(target.kind, target.name.as_deref().unwrap_or_default());
        let mut details = refusal.details;
        if target.name.is_none() {
            details.fields().remove("name");
        }
        Self { details, ..Self::new(403, "Forbidden", refusal.message) }
    }

    /// The path has no such media type.
    pub(crate) fn unsupported(message: &str) -> Self {
        Self { details: json!({}), ..Self::new(415, "UnsupportedMediaType", message) }
    }

    pub(crate) fn not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: json!({}), ..Self::new(405, "MethodNotAllowed", message) }
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
        let of = kind.qualified();
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
        Self::invalid_of(kind.group, kind.name, name, errors)
    }

    /// Fields of something that need not be stored, such as options, are invalid.
    pub(crate) fn invalid_of(group: &str, kind: &str, name: &str, errors: &FieldErrors) -> Self {
        let mut left = LARGEST_CAUSES;
        let cause = |error: &dra_attrs::FieldError| {
            let message = error.to_string();
            let message = message.strip_prefix(&format!("{}: ", error.field)).unwrap_or(&message);
            let message = shortened(message.to_owned(), left);
            left = left.saturating_sub(message.len());
            json!({"reason": error.r#type, "message": message, "field": error.field})
        };
        let causes: Vec<Value> = errors.iter().take(MOST_CAUSES).map(cause).collect();
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} {name:?} is invalid: {}", errors.whole());
        let mut details = json!({"kind": kind, "causes": causes});
        for (field, text) in [("name", name), ("group", group)] {
            if !text.is_empty() {
                details.set_field(field, text);
            }
        }
        Self { details, ..Self::new(422, "Invalid", shortened(message, LONGEST_MESSAGE)) }
    }

    /// Other managers have fields of an apply.
    pub(crate) fn apply_conflicts(message: String, conflicts: &[Conflict]) -> Self {
        let cause = |conflict: &Conflict| {
            let message = format!("conflict with {}", conflict.manager);
            json!({"reason": "FieldManagerConflict", "message": message, "field": conflict.field})
        };
        let causes: Vec<Value> = conflicts.iter().map(cause).collect();
        Self { details: json!({"causes": causes}), ..Self::new(409, "Conflict", message) }
    }

    /// Nothing new comes into a namespace that goes.
    pub(crate) fn going_namespace(kind: &Kind, name: &str, namespace: &str) -> Self {
        let detail = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Self::forbidden(kind, name, &detail);
        let message = format!("namespace {namespace} is being terminated");
        let cause = json!({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"});
        refusal.details.set_field("causes", json!([cause]));
        refusal
    }

    /// The history does not reach back as far as a watch wants.
    pub(crate) fn expired(wanted: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {wanted} ({oldest})"))
    }

    /// The list that a token goes on with is forgotten.
    pub(crate) fn old_continue(token: &str) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
            without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
            results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, \
            or deleted between the time the first chunk was returned and now may show up in the list.";
        Self { continue_from: Some(token.into()), ..Self::new(410, "Expired", message) }
    }

    /// The handler of a request ends in the middle: the client gets no answer, and the connection is cut.
    pub(crate) fn stop(reason: String) -> Self {
        Self { stop: Some(reason.into()), ..Self::new(500, "InternalError", "the handler of the request has ended") }
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
        if let Some(token) = &self.continue_from {
            body.set_metadata("continue", &**token);
        }
        body
    }
}

impl From<PatchError> for Refusal {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::MediaType => Self::unsupported(&message),
            PatchError::Body(_) => Self::bad_request(message),
            PatchError::Operations => Self::new(413, "RequestEntityTooLarge", message),
            _ => Self::new(422, "Invalid", message),
        }
    }
}

/// Returns a message, without its end if it is very long.
fn shortened(mut message: String, most: usize) -> String {
    if message.len() > most {
        let end = (0..=most).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
        message.push_str(" ... (shortened by the stand-in)");
    }
    message
}

/// Returns the answer of a request that has nothing else to return.
pub(crate) fn success(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"kind": kind.plural, "name": name, "uid": uid});
    if !kind.group.is_empty() {
        details.set_field("group", kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
