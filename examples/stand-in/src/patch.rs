//! Kinds of patches, by the content type of the request.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::strategic;

/// Patch as the client sent it.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

/// Largest number of operations of a JSON patch, as in the API server.
const MAX_OPERATIONS: usize = 10_000;

impl Patch {
    /// Reads the body of a patch.
    ///
    /// # Errors
    /// The content type is unknown, or the body is none of that type.
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        let json =
            |body| serde_json::from_slice::<Value>(body).map_err(|error| Refusal::bad_request(error.to_string()));
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => {
                let patch: json_patch::Patch =
                    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(error.to_string()))?;
                if patch.0.len() > MAX_OPERATIONS {
                    let message = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}");
                    return Err(Refusal::new(413, "RequestEntityTooLarge", message));
                }
                // A copy into itself doubles; a real server limits the sum of what is copied.
                if patch.0.iter().any(|operation| matches!(operation, PatchOperation::Copy(_))) {
                    return Err(Refusal::new(422, "Invalid", "this stand-in has no copy operation"));
                }
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => json(body).map(Self::Merge),
            "application/strategic-merge-patch+json" => json(body).map(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                // JSON is read as such: a YAML parser has other limits.
                let parsed = json(body).or_else(|_| {
                    let text = String::from_utf8_lossy(body);
                    serde_saphyr::from_str(&text).map_err(|error| Refusal::bad_request(error.to_string()))
                });
                parsed.map(Self::Apply)
            }
            _ => Err(Refusal::unsupported("415: Unsupported Media Type")),
        }
    }

    /// Returns the object with the patch. An apply is none of these: see `apply`.
    ///
    /// # Errors
    /// An operation of a JSON patch can't be carried out.
    pub(crate) fn patched(self, kind: &Kind, object: &Value) -> Result<Value, Refusal> {
        let mut object = object.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut object, &patch).map_err(|_| {
                Refusal::new(422, "Invalid", "the server rejected our request due to an error in our request")
            })?,
            Self::Merge(patch) | Self::Apply(patch) => json_patch::merge(&mut object, &patch),
            Self::Strategic(patch) => strategic::merge(kind.name, &mut object, patch),
        }
        Ok(object)
    }
}
