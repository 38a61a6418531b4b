//! Objects that carry `skipNodeOperations`, as JSON in either wire form.
//!
//! The types of k8s-openapi know the list only. [`read`] accepts the bool too, and [`write()`] writes the form that a
//! reader expects. The key counts in two places, the spec of a `ResourceSlice` and the device results of an allocation;
//! anywhere else it is an unknown field without meaning.

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{NotExpressible, SkipDeclaration, WireForm};

const KEY: &str = "skipNodeOperations";

/// An object that carries `skipNodeOperations`.
pub trait Carrier: DeserializeOwned + Serialize {
    /// The field names that lead to the carrying objects; `*` stands for every element of a list.
    const PATH: &'static [&'static str];
}

impl Carrier for ResourceSlice {
    const PATH: &'static [&'static str] = &["spec"];
}

impl Carrier for AllocationResult {
    const PATH: &'static [&'static str] = &["devices", "results", "*"];
}

impl Carrier for ResourceClaim {
    const PATH: &'static [&'static str] = &["status", "allocation", "devices", "results", "*"];
}

/// Reads an object whose `skipNodeOperations` has either form: `true` becomes `["*"]`, `false` the empty list, and what is
/// absent or `null` stays absent.
///
/// # Errors
/// What does not have the shape of the object; a declaration that is neither bool nor list.
///
/// ```
/// use dra_alloc::skip::wire::read;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::json;
///
/// let slice: ResourceSlice = read(json!({"spec": {"driver": "cpu.example.com", "skipNodeOperations": true}}))?;
/// assert_eq!(slice.spec.skip_node_operations, Some(vec!["*".to_owned()]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn read<T: Carrier>(json: Value) -> Result<T, serde_json::Error> {
    T::deserialize(listed::<T>(json).map_err(serde_json::Error::custom)?)
}

/// The JSON of an object with its `skipNodeOperations` as lists, for a caller that reads the object in its own way.
///
/// # Errors
/// A declaration that is neither bool nor list.
///
/// ```
/// use dra_alloc::skip::wire::listed;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::json;
///
/// let slice = listed::<ResourceSlice>(json!({"spec": {"skipNodeOperations": false}}))?;
/// assert_eq!(slice, json!({"spec": {"skipNodeOperations": []}}));
/// let refused = listed::<ResourceSlice>(json!({"spec": {"skipNodeOperations": 7}})).unwrap_err();
/// assert_eq!(refused.field, "spec.skipNodeOperations");
/// # Ok::<(), dra_alloc::skip::wire::NotADeclaration>(())
/// ```
pub fn listed<T: Carrier>(mut json: Value) -> Result<Value, NotADeclaration> {
    let mut problem = None;
    for_each_carrier(&mut json, T::PATH, "", &mut |object, place| {
        let Some(declaration) = object.get_mut(KEY) else { return };
        match serde_json::from_value::<SkipDeclaration>(declaration.take()) {
            Ok(read) => *declaration = read.to_kube().into(),
            Err(_) => drop(problem.get_or_insert_with(|| NotADeclaration { field: format!("{place}.{KEY}") })),
        }
    });
    problem.map_or(Ok(json), Err)
}

/// A value that is no declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: neither a bool nor a list of operation names")]
#[non_exhaustive]
pub struct NotADeclaration {
    /// Path of the field.
    pub field: String,
}

/// Writes an object with its `skipNodeOperations` in one form. An absent declaration stays absent, and an empty list is
/// absent too, as the API server writes it; the bool form keeps `false`.
///
/// # Errors
/// A declaration that the form has no value for.
///
/// ```
/// use dra_alloc::skip::WireForm;
/// use dra_alloc::skip::wire::{read, write};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::json;
///
/// let slice: ResourceSlice = read(json!({"spec": {"driver": "cpu.example.com", "skipNodeOperations": ["*"]}}))?;
/// assert_eq!(write(&slice, WireForm::Bool)?["spec"]["skipNodeOperations"], json!(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write<T: Carrier>(object: &T, form: WireForm) -> Result<Value, WriteError> {
    let mut json = serde_json::to_value(object).map_err(|error| WriteError::Json { reason: error.to_string() })?;
    let mut problem = None;
    for_each_carrier(&mut json, T::PATH, "", &mut |object, _| {
        let Some(declaration) = object.remove(KEY) else { return };
        let declaration = serde_json::from_value::<SkipDeclaration>(declaration).unwrap_or_default();
        match declaration.written_as(form) {
            Ok(SkipDeclaration::Absent) => {}
            Ok(SkipDeclaration::List(names)) if names.is_empty() => {}
            Ok(SkipDeclaration::List(names)) => drop(object.insert(KEY.to_owned(), names.into())),
            Ok(SkipDeclaration::Bool(skips)) => drop(object.insert(KEY.to_owned(), skips.into())),
            Err(refused) => drop(problem.get_or_insert(refused)),
        }
    });
    problem.map_or(Ok(json), |refused| Err(refused.into()))
}

/// Why an object can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The form has no value for a declaration.
    #[error(transparent)]
    NotExpressible(#[from] NotExpressible),
    /// The object has no JSON.
    #[error("{reason}")]
    Json {
        /// What is wrong.
        reason: String,
    },
}

/// An object read from either form, for use in types that derive `Deserialize`.
///
/// ```
/// use dra_alloc::skip::wire::EitherForm;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let slices: Vec<EitherForm<ResourceSlice>> = serde_json::from_str(r#"[{"spec": {"skipNodeOperations": false}}]"#)?;
/// assert_eq!(slices[0].0.spec.skip_node_operations, Some(vec![]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper, made to be opened")]
pub struct EitherForm<T>(pub T);

impl<'de, T: Carrier> Deserialize<'de> for EitherForm<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Value::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

/// Visits the carrying objects below `place`, with the path of each.
fn for_each_carrier(
    json: &mut Value,
    path: &[&str],
    place: &str,
    visit: &mut impl FnMut(&mut Map<String, Value>, &str),
) {
    match (path, json) {
        ([], Value::Object(object)) => visit(object, place),
        (["*", rest @ ..], Value::Array(elements)) => {
            for (index, element) in elements.iter_mut().enumerate() {
                for_each_carrier(element, rest, &format!("{place}[{index}]"), visit);
            }
        }
        ([key, rest @ ..], Value::Object(object)) => {
            if let Some(inner) = object.get_mut(*key) {
                let place = if place.is_empty() { (*key).to_owned() } else { format!("{place}.{key}") };
                for_each_carrier(inner, rest, &place, visit);
            }
        }
        _ => {}
    }
}
