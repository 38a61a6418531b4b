//! Patches of Kubernetes objects as an API server carries them out, without a server: JSON patch, merge patch, strategic merge
//! patch and server-side apply; `managedFields`, which say who has written which fields; fields that a type does not have; and the
//! sentences of Go about texts that are no JSON.
//!
//! Objects are JSON. Lists that are merged by a key are those of a table: the lists of pods, nodes and claims that programs
//! around devices write. Other lists are replaced as a whole.
//!
//! The rules are those of the [API conventions] and of [server-side apply].
//!
//! ```
//! use object_patches::Patch;
//! use serde_json::json;
//!
//! let pod = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}});
//! let body = br#"{"spec": {"containers": [{"name": "b", "image": "b:2"}]}}"#;
//! let patch = Patch::parse("application/strategic-merge-patch+json", body)?;
//! let patched = patch.patched("Pod", &pod)?;
//! assert_eq!(patched.pointer("/spec/containers/0/image"), Some(&json!("a:1")));
//! assert_eq!(patched.pointer("/spec/containers/1/image"), Some(&json!("b:2")));
//! # Ok::<(), object_patches::PatchError>(())
//! ```
//!
//! [API conventions]: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
//! [server-side apply]: https://kubernetes.io/docs/reference/using-api/server-side-apply/

mod apply;
mod field_set;
mod go_json;
pub mod managed_fields;
mod merge_lists;
mod object;
mod patch;
mod strategic;
mod unknown;

pub use apply::{ApplyError, Conflict, OnConflict, apply};
pub use field_set::{FieldSet, MAPS, Path};
pub use go_json::syntax_error;
pub use object::Object;
pub use patch::{Patch, PatchError};
pub use unknown::unknown_fields;
