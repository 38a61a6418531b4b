//! Manifests: Kubernetes objects as people write them and `kubectl get` prints them.
//!
//! Reads YAML and JSON, several documents in a file, and lists of objects. An object that can't be read becomes a
//! [`Problem`] with file, line and field; all others are read.

mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dra_alloc::skip::SkipDeclaration;
use dra_alloc::skip::wire::{SkipField, normalize_to_list};
use dra_alloc::{AllocatedState, GateSet, StateError};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, Resource};
use poolstatus::kep;
use serde::Serialize;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::objects::KubeObject;
use tree::{Step, Tree, path_text};

/// Programs that read kinds which others ignore.
const USERS: [(&str, &str); 11] = [
    ("ClusterRole", "pool-status"),
    ("DeviceClass", "scheduler"),
    ("DeviceTaintRule", "pool-status"),
    ("KubeletConfiguration", "node-agent"),
    ("Node", "scheduler"),
    ("NodeReadinessRule", "node-agent"),
    ("Pod", "scheduler"),
    ("ReadinessTaintRule", "node-agent"),
    ("ResourcePoolStatusRequest", "pool-status"),
    ("ResourceClaim", "scheduler"),
    ("ResourceSlice", "scheduler"),
];

/// Fields that Kubernetes' types lack, with the program that reads them.
const FIELD_USERS: [(&str, &str); 2] =
    [("spec.nodeReadinessRequirements", "node-agent"), ("spec.readinessGates", "node-agent")];

const SKIP: &str = "skipNodeOperations";

/// Objects of a cluster, in the order in which they were read.
///
/// An object that is read again replaces the earlier one, as in a cluster.
///
/// ```
/// use examples::manifest::Manifests;
/// let mut manifests = Manifests::default();
/// manifests.read("two.yaml", "kind: Node\nmetadata: {name: node-1}\n---\nkind: Node\nmetadata: {name: [1]}\n");
/// assert_eq!(manifests.nodes.len(), 1);
/// let problem = manifests.problems[0].to_string();
/// assert_eq!(problem, "two.yaml:5: Node: metadata.name: invalid type: sequence, expected a string");
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Manifests {
    /// Nodes of the manifests.
    pub nodes: Vec<Node>,
    /// Pods of the manifests.
    pub pods: Vec<Pod>,
    /// `ResourceSlice`s of the manifests.
    pub slices: Vec<ResourceSlice>,
    /// `DeviceClass`es of the manifests.
    pub classes: Vec<DeviceClass>,
    /// `ResourceClaim`s of the manifests, allocated or not.
    pub claims: Vec<ResourceClaim>,
    /// `DeviceTaintRule`s of the manifests.
    pub taint_rules: Vec<DeviceTaintRule>,
    /// `ResourcePoolStatusRequest`s of the manifests, in either form.
    pub requests: Vec<PoolStatusRequest>,
    /// `ClusterRole`s of the manifests.
    pub roles: Vec<ClusterRole>,
    /// Number of objects of other kinds, by kind.
    pub ignored: BTreeMap<String, usize>,
    /// Objects and documents that could not be read.
    pub problems: Vec<Problem>,
    /// Objects that were read, but perhaps not as intended.
    pub notes: Vec<Problem>,
    /// Positions of the objects in their lists, by kind and name.
    known: BTreeMap<(&'static str, String), Known>,
}

/// A `ResourcePoolStatusRequest`, with its form.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two forms")]
pub enum PoolStatusRequest {
    /// Form of KEP-5677 (`v1alpha1`).
    Kep(Box<kep::ResourcePoolStatusRequest>),
    /// Form of Kubernetes 1.37 (`v1alpha3`).
    V1alpha3(Box<v1alpha3::ResourcePoolStatusRequest>),
}

/// Location in a manifest with a description of the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Name of the file.
    pub file: String,
    /// Line number, from 1.
    pub line: Option<u64>,
    /// Kind and name of the object, as far as known.
    pub object: String,
    /// Path of the field; empty for the object as a whole.
    pub field: String,
    /// Description of the problem.
    pub reason: String,
}

#[derive(Debug)]
struct Known {
    index: usize,
    place: String,
}

/// Reason that an object can't be read, with the path of the field.
struct Fault {
    path: Vec<Step>,
    reason: String,
}

/// Kind of object that is read.
trait Kind: KubeObject + Metadata<Ty = ObjectMeta> + Serialize {
    /// API versions whose objects have the shape of the type.
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self>;

    fn read(json: Value) -> Result<Self, Fault> {
        traced(json)
    }

    /// Rejects objects that a reader accepts and an allocator must not see.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Kind for Node {
    const VERSIONS: &'static [&'static str] = &["v1"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.nodes
    }
}

impl Kind for Pod {
    const VERSIONS: &'static [&'static str] = &["v1"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.pods
    }
}

impl Kind for ClusterRole {
    const VERSIONS: &'static [&'static str] = &["v1"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.roles
    }
}

impl Kind for DeviceClass {
    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.classes
    }
}

impl Kind for DeviceTaintRule {
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1alpha3"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.taint_rules
    }
}

impl Kind for ResourceSlice {
    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.slices
    }

    fn read(json: Value) -> Result<Self, Fault> {
        carrier(json)
    }

    fn check(&self) -> Result<(), Fault> {
        required(&["spec", "driver"], &self.spec.driver)?;
        required(&["spec", "pool", "name"], &self.spec.pool.name)
    }
}

impl Kind for ResourceClaim {
    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.claims
    }

    fn read(json: Value) -> Result<Self, Fault> {
        carrier(json)
    }

    fn check(&self) -> Result<(), Fault> {
        AllocatedState::from_claims([self], GateSet::all()).map(|_| ()).map_err(|error| allocation_fault(&error))
    }
}

impl Manifests {
    /// Reads the arguments of a command line: files, directories, `-` for stdin. Without any, reads a built-in file,
    /// given by name and text.
    #[must_use]
    pub fn of_arguments(files: &[String], built_in: (&str, &str)) -> Self {
        let mut manifests = Self::default();
        if files.is_empty() {
            manifests.read(built_in.0, built_in.1);
        }
        for file in files {
            manifests.read_argument(file);
        }
        manifests
    }

    /// Reads a file, a directory, or stdin for `-`.
    pub fn read_argument(&mut self, file: &str) {
        if file == "-" {
            self.read_from("stdin", io::stdin().lock());
        } else {
            self.read_path(Path::new(file));
        }
    }

    /// Reads the documents of a text. Problems name it as `file`.
    pub fn read(&mut self, file: &str, text: &str) {
        for (line, document) in tree::documents(text) {
            match Tree::parse(document, line) {
                Ok(tree) => self.visit(file, &tree, None),
                Err((line, reason)) => self.problems.push(Problem::new(file, line, "", &[], reason)),
            }
        }
    }

    /// Reads the files that [`manifest_files`] returns.
    pub fn read_path(&mut self, path: &Path) {
        let file = path.display().to_string();
        match manifest_files(path) {
            Ok(files) => files.iter().for_each(|path| self.read_file(path)),
            Err(error) => self.problems.push(Problem::new(&file, None, "", &[], error.to_string())),
        }
    }

    /// Reads a source to its end. Problems name it as `file`.
    pub fn read_from(&mut self, file: &str, mut source: impl Read) {
        let mut text = String::new();
        match source.read_to_string(&mut text) {
            Ok(_) => self.read(file, &text),
            Err(error) => self.problems.push(Problem::new(file, None, "", &[], error.to_string())),
        }
    }

    fn read_file(&mut self, path: &Path) {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(source) => self.read_from(&file, source),
            Err(error) => self.problems.push(Problem::new(&file, None, "", &[], error.to_string())),
        }
    }

    /// Reads an object or a list of objects. Items of a typed list need not repeat the kind.
    fn visit(&mut self, file: &str, tree: &Tree, implied: Option<&str>) {
        if tree.is_null() {
            return;
        }
        let Some(kind) = tree.text(&["kind"]).or(implied) else {
            let fault = Fault { path: vec!["kind".into()], reason: "must be set".to_owned() };
            return self.refuse(file, tree, "", fault);
        };
        match (kind.strip_suffix("List"), tree.get("items")) {
            (Some(of), Some(items)) => {
                let implied = Some(of).filter(|of| !of.is_empty());
                items.elements().for_each(|item| self.visit(file, item, implied));
            }
            _ => self.visit_object(file, tree, kind),
        }
    }

    fn visit_object(&mut self, file: &str, tree: &Tree, kind: &str) {
        match kind {
            "Node" => self.enter::<Node>(file, tree),
            "Pod" => self.enter::<Pod>(file, tree),
            "ResourceSlice" => self.enter::<ResourceSlice>(file, tree),
            "DeviceClass" => self.enter::<DeviceClass>(file, tree),
            "ResourceClaim" => self.enter::<ResourceClaim>(file, tree),
            "DeviceTaintRule" => self.enter::<DeviceTaintRule>(file, tree),
            "ClusterRole" => self.enter::<ClusterRole>(file, tree),
            "ResourcePoolStatusRequest" => self.enter_request(file, tree),
            _ => self.ignore(kind),
        }
    }

    fn ignore(&mut self, kind: &str) {
        let count = self.ignored.entry(kind.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    fn enter<T: Kind>(&mut self, file: &str, tree: &Tree) {
        let api = tree.text(&["apiVersion"]).map(|api| api.rsplit_once('/').unwrap_or(("", api)));
        match api {
            Some((group, _)) if group != T::GROUP => return self.ignore(&format!("{} of group {group}", T::KIND)),
            Some((_, version)) if !T::VERSIONS.contains(&version) => {
                let reason = format!("version {version} can't be read, only {}", T::VERSIONS.join(" and "));
                return self.refuse(file, tree, T::KIND, Fault { path: vec!["apiVersion".into()], reason });
            }
            _ => {}
        }
        let json = tree.object_json();
        match read_object::<T>(json.clone()) {
            Ok(object) => {
                self.note_unknown_fields(file, tree, &json, &object);
                self.keep(file, tree, object);
            }
            Err(fault) => self.refuse(file, tree, T::KIND, fault),
        }
    }

    fn enter_request(&mut self, file: &str, tree: &Tree) {
        let json = tree.object_json();
        let request = match tree.text(&["apiVersion"]) {
            Some("resource.k8s.io/v1alpha3") => {
                traced(json).map(|request| PoolStatusRequest::V1alpha3(Box::new(request)))
            }
            _ => traced(json).map(|request| PoolStatusRequest::Kep(Box::new(request))),
        };
        match request {
            Ok(request) => self.requests.push(request),
            Err(fault) => self.refuse(file, tree, "ResourcePoolStatusRequest", fault),
        }
    }

    /// Returns a line for each kind of objects that `program` does not use, with the program that does, if there is one.
    /// `used` has the kinds that the program uses.
    #[must_use]
    pub fn ignored_lines(&self, program: &str, used: &[&str]) -> Vec<String> {
        let unused = self.counts().into_iter().filter(|(kind, count)| *count > 0 && !used.contains(kind));
        let mut kinds = self.ignored.clone();
        kinds.extend(unused.map(|(kind, count)| (kind.to_owned(), count)));
        ignored_lines(program, &kinds)
    }

    /// Gives each pod without a UID one that is made of its name, as an API server gives it one. Pods as people write them
    /// have none.
    pub fn fill_pod_uids(&mut self) {
        for pod in &mut self.pods {
            let name = name_of(&pod.metadata);
            pod.metadata.uid.get_or_insert(name);
        }
    }

    /// Returns the number of objects of each kind that is read.
    const fn counts(&self) -> [(&'static str, usize); 8] {
        [
            (Node::KIND, self.nodes.len()),
            (Pod::KIND, self.pods.len()),
            (ResourceSlice::KIND, self.slices.len()),
            (DeviceClass::KIND, self.classes.len()),
            (ResourceClaim::KIND, self.claims.len()),
            (DeviceTaintRule::KIND, self.taint_rules.len()),
            (ClusterRole::KIND, self.roles.len()),
            (kep::ResourcePoolStatusRequest::KIND, self.requests.len()),
        ]
    }

    fn keep<T: Kind>(&mut self, file: &str, tree: &Tree, object: T) {
        let name = name_of(object.metadata());
        let place = Problem::new(file, tree.line(), "", &[], String::new()).place();
        let index = T::list(self).len();
        if let Some(known) = self.known.get_mut(&(T::KIND, name.clone())) {
            let reason = format!("replaces the one of {}", known.place);
            self.notes.push(Problem::new(file, tree.line(), &format!("{} {name}", T::KIND), &[], reason));
            known.place = place;
            let index = known.index;
            if let Some(old) = T::list(self).get_mut(index) {
                *old = object;
            }
        } else {
            self.known.insert((T::KIND, name), Known { index, place });
            T::list(self).push(object);
        }
    }

    fn refuse(&mut self, file: &str, tree: &Tree, kind: &str, fault: Fault) {
        let (line, object) = (tree.line_at(&fault.path), tree.described(kind));
        self.problems.push(Problem::new(file, line, &object, &fault.path, fault.reason));
    }

    fn note_unknown_fields<T: Kind>(&mut self, file: &str, tree: &Tree, given: &Value, object: &T) {
        let read = serde_json::to_value(object).unwrap_or_default();
        // Unknown fields in the status of nodes and pods are not noted: the status grows with every release, and little
        // of it matters here.
        let grows = [Node::KIND, Pod::KIND].contains(&T::KIND);
        let matters = |path: &Vec<Step>| !grows || path.first() != Some(&"status".into());
        for path in tree::only_in(given, &read).into_iter().filter(matters) {
            let user = FIELD_USERS.iter().find(|(field, _)| *field == path_text(&path));
            let reason = match user {
                Some((_, user)) => format!("ignored; {user} reads it"),
                None => "unknown field, ignored".to_owned(),
            };
            self.notes.push(Problem::new(file, tree.line_at(&path), &tree.described(T::KIND), &path, reason));
        }
    }
}

impl Problem {
    fn new(file: &str, line: Option<u64>, object: &str, path: &[Step], reason: String) -> Self {
        Self { file: file.to_owned(), line, object: object.to_owned(), field: path_text(path), reason }
    }

    /// Returns the file and line.
    fn place(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.place(), &self.object, &self.field, &self.reason];
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(": "))
    }
}

/// Returns a line for each kind that `program` does not use, with the program that does, if there is one.
#[must_use]
pub fn ignored_lines(program: &str, kinds: &BTreeMap<String, usize>) -> Vec<String> {
    let line = |(kind, count): (&String, &usize)| {
        let user = USERS.iter().find(|(name, _)| name == kind).map(|(_, user)| format!("; {user} reads it"));
        format!("{program}: ignored: {kind} ({count}){}", user.unwrap_or_default())
    };
    kinds.iter().map(line).collect()
}

/// Returns `namespace/name`, or the name alone if there is no namespace.
#[must_use]
pub fn name_of(metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the file itself, or the `.yaml`, `.yml` and `.json` files in a directory and its subdirectories, sorted by
/// path.
///
/// # Errors
/// A directory can't be read.
pub fn manifest_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if is_manifest(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json")
}

fn read_object<T: Kind>(json: Value) -> Result<T, Fault> {
    let object = T::read(json)?;
    required(&["metadata", "name"], object.metadata().name.as_deref().unwrap_or_default())?;
    object.check()?;
    Ok(object)
}

fn required(path: &[&str], value: &str) -> Result<(), Fault> {
    let fault = || Fault { path: path.iter().map(|key| (*key).into()).collect(), reason: "must be set".to_owned() };
    if value.is_empty() { Err(fault()) } else { Ok(()) }
}

fn traced<T: KubeObject>(json: Value) -> Result<T, Fault> {
    T::from_json(json).map_err(|error| {
        let path = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            _ => None,
        });
        Fault { path: path.collect(), reason: error.inner().to_string() }
    })
}

/// Reads an object with either form of `skipNodeOperations`.
fn carrier<T: KubeObject + SkipField>(json: Value) -> Result<T, Fault> {
    let broken = broken_declaration(&json, T::PATH);
    match (normalize_to_list::<T>(json), broken) {
        (Ok(json), _) => traced(json),
        (Err(_), Some(path)) => Err(Fault { path, reason: "neither a bool nor a list of operation names".to_owned() }),
        (Err(error), None) => Err(Fault { path: Vec::new(), reason: error.to_string() }),
    }
}

/// Returns the path of an invalid `skipNodeOperations`, which [`normalize_to_list`] reports as a text only.
fn broken_declaration(json: &Value, carriers: &[&str]) -> Option<Vec<Step>> {
    let (step, path) = match carriers {
        [] => {
            let declaration = json.get(SKIP)?.clone();
            return serde_json::from_value::<SkipDeclaration>(declaration).err().map(|_| vec![SKIP.into()]);
        }
        ["*", rest @ ..] => {
            let mut elements = json.as_array()?.iter().enumerate();
            elements.find_map(|(index, json)| Some((Step::Index(index), broken_declaration(json, rest)?)))?
        }
        [key, rest @ ..] => ((*key).into(), broken_declaration(json.get(*key)?, rest)?),
    };
    Some([vec![step], path].concat())
}

fn allocation_fault(error: &StateError) -> Fault {
    let mut path: Vec<Step> = vec!["status".into(), "allocation".into()];
    match error {
        StateError::ConsumedCapacity { index, capacity, source, .. } => {
            path.extend(["devices".into(), "results".into(), Step::Index(usize::from(*index))]);
            path.extend(["consumedCapacity".into(), capacity.as_str().into()]);
            Fault { path, reason: source.to_string() }
        }
        _ => Fault { path, reason: error.to_string() },
    }
}
