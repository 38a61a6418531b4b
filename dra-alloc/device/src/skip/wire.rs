//! JSON of objects with `skipNodeOperations` in either wire form.
//!
//! The types of k8s-openapi have only the list form. [`SkipField::read`] accepts the bool too, and [`SkipField::write`]
//! writes the form that the reader expects. Only the spec of a `ResourceSlice` and the device results of an allocation have the field;
//! anywhere else the key is an unknown field and ignored.

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use super::{SkipDeclaration, WireForm, WireFormError};

const KEY: &str = "skipNodeOperations";

mod sealed {
    /// Supertrait that no other crate can name: only the types of this file have the field.
    #[expect(unnameable_types, reason = "that is its purpose")]
    pub trait Sealed {}
}
use sealed::Sealed;

/// An object type with the field `skipNodeOperations`: a slice, an allocation, a claim.
pub trait SkipField: Sealed + DeserializeOwned + Serialize {
    /// Path to the JSON objects that have the field `skipNodeOperations`; `*` stands for every element of a list.
    const PATH: &'static [&'static str];

    /// Deserializes an object whose `skipNodeOperations` has either form: `true` becomes `["*"]`, `false` the empty list,
    /// and `null` is absent.
    ///
    /// # Errors
    /// The JSON is not a valid object of the type, or a declaration is neither bool nor list.
    ///
    /// ```
    /// use dra_device::skip::SkipField;
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use serde_json::json;
    ///
    /// let slice: ResourceSlice = SkipField::read(json!({"spec": {"driver": "cpu.example.com", "skipNodeOperations": true}}))?;
    /// assert_eq!(slice.spec.skip_node_operations, Some(vec!["*".to_owned()]));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    fn read(json: Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(Self::normalize_to_list(json).map_err(serde_json::Error::custom)?)
    }

    /// Converts `skipNodeOperations` in the JSON of an object to the list form. For a caller that deserializes the object
    /// itself.
    ///
    /// # Errors
    /// A declaration that is neither bool nor list.
    ///
    /// ```
    /// use dra_device::skip::{SkipField, WireFormError};
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use serde_json::json;
    ///
    /// let slice = ResourceSlice::normalize_to_list(json!({"spec": {"skipNodeOperations": false}}))?;
    /// assert_eq!(slice, json!({"spec": {"skipNodeOperations": []}}));
    /// let refused = ResourceSlice::normalize_to_list(json!({"spec": {"skipNodeOperations": 7}})).unwrap_err();
    /// assert_eq!(refused, WireFormError::NotADeclaration { field: "spec.skipNodeOperations".to_owned() });
    /// # Ok::<(), WireFormError>(())
    /// ```
    fn normalize_to_list(mut json: Value) -> Result<Value, WireFormError> {
        let mut problem = None;
        for_each_field(&mut json, Self::PATH, "", &mut |object, place| {
            let Some(declaration) = object.get_mut(KEY) else { return };
            match serde_json::from_value::<SkipDeclaration>(declaration.take()) {
                Ok(read) => *declaration = read.to_kube().into(),
                Err(_) => drop(
                    problem.get_or_insert_with(|| WireFormError::NotADeclaration { field: format!("{place}.{KEY}") }),
                ),
            }
        });
        problem.map_or(Ok(json), Err)
    }

    /// Serializes an object with its `skipNodeOperations` in the given form. Absent stays absent; an empty list is omitted
    /// in the list form, as by the API server, and is `false` in the bool form.
    ///
    /// # Errors
    /// The form can't express a declaration of the object, or the object can't be serialized.
    ///
    /// ```
    /// use dra_device::skip::{SkipField, WireForm};
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use serde_json::json;
    ///
    /// let slice: ResourceSlice = SkipField::read(json!({"spec": {"driver": "cpu.example.com", "skipNodeOperations": ["*"]}}))?;
    /// assert_eq!(slice.write(WireForm::Bool)?["spec"]["skipNodeOperations"], json!(true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn write(&self, form: WireForm) -> Result<Value, WireFormError> {
        let mut json = serde_json::to_value(self).map_err(|error| WireFormError::Json { reason: error.to_string() })?;
        let mut problem = None;
        for_each_field(&mut json, Self::PATH, "", &mut |object, _| {
            let Some(declaration) = object.remove(KEY) else { return };
            let declaration = serde_json::from_value::<SkipDeclaration>(declaration).unwrap_or_default();
            match declaration.to_form(form) {
                Ok(SkipDeclaration::Absent) => {}
                Ok(SkipDeclaration::List(names)) if names.is_empty() => {}
                Ok(SkipDeclaration::List(names)) => drop(object.insert(KEY.to_owned(), names.into())),
                Ok(SkipDeclaration::Bool(skips)) => drop(object.insert(KEY.to_owned(), skips.into())),
                Err(refused) => drop(problem.get_or_insert(refused)),
            }
        });
        problem.map_or(Ok(json), Err)
    }
}

impl Sealed for ResourceSlice {}

impl SkipField for ResourceSlice {
    const PATH: &'static [&'static str] = &["spec"];
}

impl Sealed for AllocationResult {}

impl SkipField for AllocationResult {
    const PATH: &'static [&'static str] = &["devices", "results", "*"];
}

impl Sealed for ResourceClaim {}

impl SkipField for ResourceClaim {
    const PATH: &'static [&'static str] = &["status", "allocation", "devices", "results", "*"];
}

/// Calls `visit` for each JSON object at `path` below `place`, with its full path.
fn for_each_field(json: &mut Value, path: &[&str], place: &str, visit: &mut impl FnMut(&mut Map<String, Value>, &str)) {
    match (path, json) {
        ([], Value::Object(object)) => visit(object, place),
        (["*", rest @ ..], Value::Array(elements)) => {
            for (index, element) in elements.iter_mut().enumerate() {
                for_each_field(element, rest, &format!("{place}[{index}]"), visit);
            }
        }
        ([key, rest @ ..], Value::Object(object)) => {
            if let Some(inner) = object.get_mut(*key) {
                let place = if place.is_empty() { (*key).to_owned() } else { format!("{place}.{key}") };
                for_each_field(inner, rest, &place, visit);
            }
        }
        _ => {}
    }
}
