//! Pod templates of objects whose kind is not read: the place of the template is given on the command line.

use std::slice;
use std::str::FromStr;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::kind::{check_pod_spec, traced};
use super::problem::Fault;
use super::tree::Step;

/// Largest number of pods that an object asks for; what asks for more counts as this.
const MOST_PODS: u64 = 1_000_000;

/// Fields beside a step of the path that say how many pods there are.
const NUMBERS: [&str; 2] = ["replicas", "parallelism"];

/// Step that stands for all elements of a list, or all values of a map.
const EACH: &str = "*";

/// Kind with the place of its pod template, such as `MPIJob=spec.mpiReplicaSpecs.*.template`. All elements of a list are `*` or
/// `[*]`.
///
/// ```
/// use examples::manifest::TemplatePath;
/// let path: TemplatePath = "MPIJob=spec.mpiReplicaSpecs.*.template".parse()?;
/// assert_eq!(path.kind(), "MPIJob");
/// assert_eq!("MPIJob=.spec.mpiReplicaSpecs[*].template".parse(), Ok(path));
/// assert!("MPIJob".parse::<TemplatePath>().is_err());
/// # Ok::<(), examples::manifest::TemplatePathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePath {
    kind: String,
    steps: Vec<String>,
}

/// A text that is no kind with a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{text}: not of the form KIND=PATH, such as MPIJob=spec.mpiReplicaSpecs.*.template")]
pub struct TemplatePathError {
    /// The text.
    pub text: String,
}

/// A pod template of an object, with its number of pods.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TemplatedObject {
    /// Kind of the object.
    pub kind: String,
    /// Metadata of the object. Where an object has several templates, the name ends with the part that the `*` of the path
    /// stands for.
    pub metadata: ObjectMeta,
    /// The template.
    pub template: PodTemplateSpec,
    /// Number of pods: the product of the numbers `replicas` and `parallelism` beside the steps of the path.
    pub pods: u64,
}

impl FromStr for TemplatePath {
    type Err = TemplatePathError;

    fn from_str(text: &str) -> Result<Self, TemplatePathError> {
        let wrong = || TemplatePathError { text: text.to_owned() };
        let (kind, path) = text.split_once('=').ok_or_else(wrong)?;
        let path = path.replace("[*]", ".*");
        let steps: Vec<String> = path.trim_start_matches('.').split('.').map(str::to_owned).collect();
        let is_whole = !kind.is_empty() && steps.iter().all(|step| !step.is_empty());
        if is_whole { Ok(Self { kind: kind.to_owned(), steps }) } else { Err(wrong()) }
    }
}

/// Part of an object on the way to its templates.
struct Place<'o> {
    value: &'o Value,
    path: Vec<Step>,
    /// Names of the parts that each `*` stands for.
    parts: Vec<String>,
    pods: u64,
}

impl TemplatePath {
    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Reads the templates of an object; a namespace is that of objects without one.
    pub(super) fn objects(&self, object: &Value, namespace: Option<&str>) -> Result<Vec<TemplatedObject>, Fault> {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta =
            serde_json::from_value(metadata).map_err(|error| Fault::new(&["metadata"], error.to_string()))?;
        let name = metadata.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Fault::new(&["metadata", "name"], "must be set"))?;
        let own = metadata.namespace.clone().filter(|own| !own.is_empty());
        let namespace = own.or_else(|| namespace.map(str::to_owned));
        self.places(object)?
            .into_iter()
            .map(|place| {
                let template: PodTemplateSpec =
                    traced(place.value.clone()).map_err(|fault| under(&place.path, fault))?;
                if let Some(spec) = &template.spec {
                    check_pod_spec(spec)
                        .map_err(|fault| under(&[&place.path[..], &["spec".into()]].concat(), fault))?;
                }
                let name = [slice::from_ref(&name), place.parts.as_slice()].concat().join("-");
                let metadata = ObjectMeta { name: Some(name), namespace: namespace.clone(), ..metadata.clone() };
                Ok(TemplatedObject { kind: self.kind.clone(), metadata, template, pods: place.pods })
            })
            .collect()
    }

    /// Finds the templates of an object.
    fn places<'o>(&self, object: &'o Value) -> Result<Vec<Place<'o>>, Fault> {
        let mut places = vec![Place { value: object, path: Vec::new(), parts: Vec::new(), pods: 1 }];
        for step in &self.steps {
            let mut below = Vec::new();
            for place in &places {
                below.extend(place.step(step));
            }
            if below.is_empty() {
                let path = self.steps.iter().map(|step| step.as_str().into()).collect();
                return Err(Fault { path, reason: format!("no pod template there: nothing at {step}") });
            }
            places = below;
        }
        Ok(places)
    }
}

impl<'o> Place<'o> {
    /// Goes one step down.
    fn step(&self, step: &str) -> Vec<Self> {
        let below = |value: &'o Value, own: Step, part: Option<String>| {
            let numbers = NUMBERS.iter().filter_map(|field| self.value.get(field)?.as_u64());
            Place {
                value,
                path: [self.path.as_slice(), &[own]].concat(),
                parts: self.parts.iter().cloned().chain(part).collect(),
                pods: numbers.fold(self.pods, u64::saturating_mul).min(MOST_PODS),
            }
        };
        match (step, self.value) {
            (EACH, Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    let name =
                        value.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
                    below(value, Step::Index(index), Some(name))
                })
                .collect(),
            (EACH, Value::Object(entries)) => {
                entries.iter().map(|(key, value)| below(value, key.as_str().into(), Some(key.to_lowercase()))).collect()
            }
            (step, value) => value.get(step).map(|value| below(value, step.into(), None)).into_iter().collect(),
        }
    }
}

fn under(path: &[Step], fault: Fault) -> Fault {
    Fault { path: [path, &fault.path].concat(), ..fault }
}
