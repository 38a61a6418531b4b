//! Kinds of patches, by the content type of the request.

use json_patch::PatchOperation;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::go_json::syntax_error;
use crate::strategic;

/// Patch as the client sent it.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an API server has these four")]
pub enum Patch {
    /// Operations, one after the other (RFC 6902).
    Json(json_patch::Patch),
    /// Fields that replace those of the object; `null` removes one (RFC 7396).
    Merge(Value),
    /// Fields that are merged as the type of each says; lists by their keys.
    Strategic(Value),
    /// All that a manager wants of the object.
    Apply(Value),
}

/// Largest number of operations of a JSON patch, as in the API server.
const MAX_OPERATIONS: usize = 10_000;

/// Reason that a patch can't be read or carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The content type is none of a patch.
    #[error("415: Unsupported Media Type")]
    MediaType,
    /// The body is none of its content type.
    #[error("{0}")]
    Body(String),
    /// The JSON patch has more operations than an API server carries out.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}")]
    Operations,
    /// The JSON patch copies. A copy into itself doubles; a real server limits the sum of the copies.
    #[error("a JSON patch with a copy operation is not carried out here")]
    Copy,
    /// An operation of the JSON patch can't be carried out.
    #[error("the server rejected our request due to an error in our request")]
    Operation,
}

impl Patch {
    /// Reads the body of a patch by its content type, in time linear in its length.
    ///
    /// # Errors
    /// The content type is unknown, the body is none of that type, or its operations are too many or copy.
    ///
    /// ```
    /// use object_patches::{Patch, PatchError};
    /// assert!(matches!(Patch::parse("application/merge-patch+json; charset=utf-8", b"{}"), Ok(Patch::Merge(_))));
    /// assert_eq!(Patch::parse("application/json", b"{}").unwrap_err(), PatchError::MediaType);
    /// ```
    pub fn parse(content_type: &str, body: &[u8]) -> Result<Self, PatchError> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => operations(body).map(Self::Json),
            "application/merge-patch+json" => json(body).map(Self::Merge),
            "application/strategic-merge-patch+json" => json(body).map(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                // JSON is read as such: a YAML parser has other limits.
                json(body).or_else(|_| yaml(body)).map(Self::Apply)
            }
            _ => Err(PatchError::MediaType),
        }
    }

    /// Returns an object of a kind with the patch. An apply counts as a merge here: see [`apply`](crate::apply()).
    ///
    /// # Errors
    /// An operation of a JSON patch can't be carried out.
    pub fn patched(self, kind: &str, object: &Value) -> Result<Value, PatchError> {
        let mut object = object.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut object, &patch).map_err(|_| PatchError::Operation)?,
            Self::Merge(patch) | Self::Apply(patch) => json_patch::merge(&mut object, &patch),
            Self::Strategic(patch) => strategic::merge(kind, &mut object, patch),
        }
        Ok(object)
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, PatchError> {
    let sentence = |error: serde_json::Error| syntax_error(body).unwrap_or_else(|| error.to_string());
    serde_json::from_slice(body).map_err(|error| PatchError::Body(sentence(error)))
}

fn yaml(body: &[u8]) -> Result<Value, PatchError> {
    serde_saphyr::from_str(&String::from_utf8_lossy(body)).map_err(|error| PatchError::Body(error.to_string()))
}

fn operations(body: &[u8]) -> Result<json_patch::Patch, PatchError> {
    let patch: json_patch::Patch = serde_json::from_slice(body).map_err(|error| PatchError::Body(error.to_string()))?;
    if patch.0.len() > MAX_OPERATIONS {
        return Err(PatchError::Operations);
    }
    if patch.0.iter().any(|operation| matches!(operation, PatchOperation::Copy(_))) {
        return Err(PatchError::Copy);
    }
    Ok(patch)
}
