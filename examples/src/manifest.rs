//! Manifests: Kubernetes objects as people write them and `kubectl get` prints them.
//!
//! Reads YAML and JSON, several documents in a file, and lists of objects. An object that can't be read becomes a
//! [`Problem`] with file, line and field; all others are read. A list that is not whole is such an object.

mod door;
mod empty;
mod kind;
mod list;
mod pool_request;
mod problem;
mod source;
mod template_path;
mod tree;
mod unquoted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use dra_attrs::Profile;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use readiness::rule::{NodeReadinessRule, ReadinessTaintRule};
use readiness::{GatedNode, GatedPod, KubeletConfiguration};
use serde_json::Value;

pub use door::{Lost, LostCause, lost_fields, span, title};
use empty::unknown_empty_fields;
use kind::{Kind, may_grow, read_object, traced};
use list::Implied;
pub use pool_request::PoolStatusRequest;
use problem::Fault;
pub use problem::Problem;
pub use source::{MAX_MANIFEST_LEN, manifest_files, read_text};
pub use template_path::{TemplatePath, TemplatePathError, TemplatedObject};
use tree::{OnlyIn, Tree, fields_only_in};
pub(crate) use tree::{only_in, path_text};

use crate::candidates::is_pending;
use crate::quoted::{QUOTE, quoted};
use dra_live::allocation_part::allocation_part;

/// Programs that read kinds which others ignore.
const USERS: [(&str, &str); 21] = [
    ("ClusterRole", "pool-status"),
    ("CronJob", "scheduler"),
    ("DaemonSet", "scheduler"),
    ("Deployment", "scheduler"),
    ("DeviceClass", "scheduler"),
    ("DeviceTaintRule", "pool-status"),
    ("Job", "scheduler"),
    ("KubeletConfiguration", "node-agent"),
    ("Node", "scheduler"),
    ("NodeReadinessRule", "node-agent"),
    ("Pod", "scheduler"),
    ("PodDisruptionBudget", "kubectl dra plan"),
    ("PodGroup", "scheduler"),
    ("PriorityClass", "kubectl dra plan"),
    ("ReadinessTaintRule", "node-agent"),
    ("ReplicaSet", "scheduler"),
    ("ResourceClaim", "scheduler"),
    ("ResourceClaimTemplate", "scheduler"),
    ("ResourcePoolStatusRequest", "pool-status"),
    ("ResourceSlice", "scheduler"),
    ("StatefulSet", "scheduler"),
];

/// Kinds whose objects have a namespace.
const NAMESPACED: [&str; 11] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "PodDisruptionBudget",
    "PodGroup",
    "ReplicaSet",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "StatefulSet",
];

/// Fields that Kubernetes' types lack, with the program that reads them.
const FIELD_USERS: [(&str, &str); 2] =
    [("spec.nodeReadinessRequirements", "node-agent"), ("spec.readinessGates", "node-agent")];

/// Largest number of unknown fields of one object that are named.
const MOST_UNKNOWN_FIELDS: usize = 10;

/// Largest number of objects without a kind, of one file, that are named. Others are counted.
const MOST_WITHOUT_KIND: usize = 10;

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
    /// `PodGroup`s of the manifests.
    pub pod_groups: Vec<PodGroup>,
    /// `PodDisruptionBudget`s of the manifests.
    pub budgets: Vec<PodDisruptionBudget>,
    /// `PriorityClass`es of the manifests.
    pub priority_classes: Vec<PriorityClass>,
    /// `ResourceSlice`s of the manifests.
    pub slices: Vec<ResourceSlice>,
    /// `DeviceClass`es of the manifests.
    pub classes: Vec<DeviceClass>,
    /// `ResourceClaim`s of the manifests, allocated or not.
    pub claims: Vec<ResourceClaim>,
    /// `ResourceClaimTemplate`s of the manifests.
    pub claim_templates: Vec<ResourceClaimTemplate>,
    /// Objects that make pods.
    pub workloads: WorkloadManifests,
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
    /// Objects without a version, which kubectl does not apply.
    pub unversioned: Vec<Problem>,
    /// Names of the claims of which the allocation alone is read.
    pub partly_read: BTreeSet<String>,
    /// Number of claims with an allocation that can't be read.
    unread_allocations: usize,
    /// Objects about the readiness of nodes; none unless asked for.
    pub readiness: ReadinessManifests,
    /// Number of objects without a kind, of the file that is being read.
    without_kind: usize,
    /// Which kinds are read.
    scope: Scope,
    /// Whose rules decide which fields there are.
    rules: Rules,
    /// Namespace of objects that are written without one; as they are written if there is none.
    namespace: Option<String>,
    /// Places of pod templates in objects of other kinds.
    template_paths: Vec<TemplatePath>,
    /// Objects as they were written, by kind and name; none unless asked for.
    written: Option<BTreeMap<(&'static str, String), Value>>,
    /// Forms from which objects of a kind were converted. Each is noted once.
    converted: BTreeSet<(&'static str, String)>,
    /// Positions of the objects in their lists, by kind and name.
    known: BTreeMap<(&'static str, String), Known>,
}

/// Objects about the readiness of nodes (KEP-5233).
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReadinessManifests {
    /// Nodes with their gates.
    pub nodes: Vec<GatedNode>,
    /// Pods with their requirements.
    pub pods: Vec<GatedPod>,
    /// Configurations of kubelets, whose gates are registered.
    pub kubelets: Vec<KubeletConfiguration>,
    /// Rules of a controller for start-up taints.
    pub taint_rules: Vec<ReadinessTaintRule>,
    /// Rules of node-readiness-controller.
    pub rules: Vec<NodeReadinessRule>,
    /// Lists of conditions of documents with nothing but `status`, as the KEP's walkthrough has them.
    pub statuses: Vec<Value>,
}

/// Objects that make pods.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct WorkloadManifests {
    /// `DaemonSet`s of the manifests.
    pub daemon_sets: Vec<DaemonSet>,
    /// `Deployment`s of the manifests.
    pub deployments: Vec<Deployment>,
    /// `ReplicaSet`s of the manifests.
    pub replica_sets: Vec<ReplicaSet>,
    /// `StatefulSet`s of the manifests.
    pub stateful_sets: Vec<StatefulSet>,
    /// `Job`s of the manifests.
    pub jobs: Vec<Job>,
    /// `CronJob`s of the manifests.
    pub cron_jobs: Vec<CronJob>,
    /// Objects of other kinds with their pod templates, if their places were given.
    pub others: Vec<TemplatedObject>,
}

/// Kinds that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    /// Nodes, pods and objects about devices.
    #[default]
    Devices,
    /// Nodes and pods with what readiness adds to them, and objects about readiness.
    Readiness,
}

/// Whose rules decide which fields there are.
#[derive(Clone, Copy, Debug)]
struct Rules(Profile);

impl Default for Rules {
    fn default() -> Self {
        Self(Profile::V1_37)
    }
}

#[derive(Debug)]
struct Known {
    index: usize,
    /// Number of objects that were read before.
    sequence: usize,
    place: String,
}

impl Manifests {
    /// Returns an empty collection that reads nodes and pods as [`ReadinessManifests`], and no objects about devices.
    #[must_use]
    pub fn of_readiness() -> Self {
        Self { scope: Scope::Readiness, ..Self::default() }
    }

    /// Returns an empty collection that reads objects as the API server of a release does. The default is 1.37.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use examples::manifest::Manifests;
    /// let mut manifests = Manifests::of_release(Profile::V1_35);
    /// let spec = "spec: {driver: d, pool: {name: p, generation: 0, resourceSliceCount: 1}, nodeName: n, skipNodeOperations: ['*']}";
    /// manifests.read("a.yaml", &format!("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s}}\n{spec}\n"));
    /// assert_eq!(manifests.slices[0].spec.skip_node_operations, None);
    /// assert!(manifests.notes[0].reason.starts_with("dropped: Kubernetes 1.35 does not know the field; known from 1.37 on"));
    /// ```
    #[must_use]
    pub fn of_release(profile: Profile) -> Self {
        Self { rules: Rules(profile), ..Self::default() }
    }

    /// Keeps objects of `resource.k8s.io` as they were written as well ([`Manifests::written`]).
    #[must_use]
    pub fn keeping_written(self) -> Self {
        Self { written: Some(BTreeMap::new()), ..self }
    }

    /// Reads objects that have no namespace as those of a namespace, as kubectl does.
    #[must_use]
    pub fn in_namespace(self, namespace: Option<String>) -> Self {
        Self { namespace, ..self }
    }

    /// Reads the pod templates of objects of other kinds.
    #[must_use]
    pub fn with_templates(self, template_paths: Vec<TemplatePath>) -> Self {
        Self { template_paths, ..self }
    }

    /// Returns the number of objects that were read before one, by kind and name.
    #[must_use]
    pub fn sequence(&self, kind: &str, name: &str) -> Option<usize> {
        let kind = USERS.into_iter().map(|(known, _)| known).find(|known| *known == kind)?;
        self.known.get(&(kind, name.to_owned())).map(|known| known.sequence)
    }

    /// Returns an object of `resource.k8s.io` as it was written, with its kind and version, if such objects are kept.
    #[must_use]
    pub fn written(&self, kind: &'static str, name: &str) -> Option<&Value> {
        self.written.as_ref()?.get(&(kind, name.to_owned()))
    }

    /// Reads the arguments of a command line: files, directories, `-` for stdin. Without any, reads a built-in file,
    /// given by name and text.
    #[must_use]
    pub fn of_arguments(files: &[String], built_in: (&str, &str), profile: Profile) -> Self {
        Self::of_release(profile).with_arguments(files, built_in)
    }

    /// Reads the arguments of a command line, as [`Manifests::of_arguments`] does.
    #[must_use]
    pub fn with_arguments(mut self, files: &[String], built_in: (&str, &str)) -> Self {
        let manifests = &mut self;
        if files.is_empty() {
            manifests.read(built_in.0, built_in.1);
        }
        for file in files {
            manifests.read_argument(file);
        }
        self
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
                Ok(tree) => self.visit(file, &tree, Implied::default()),
                Err((line, reason)) => self.problems.push(Problem::new(file, line, "", &[], reason)),
            }
        }
        self.count_without_kind(file);
    }

    /// Tells how many further objects of a file have no kind.
    fn count_without_kind(&mut self, file: &str) {
        let more = std::mem::take(&mut self.without_kind).saturating_sub(MOST_WITHOUT_KIND);
        if more > 0 {
            let reason = format!("must be set in {more} more objects");
            self.problems.push(Problem::new(file, None, "", &["kind".into()], reason));
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
    pub fn read_from(&mut self, file: &str, source: impl Read) {
        match source::text(source) {
            Ok(text) => self.read(file, &text),
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

    /// Reads an object or a list of objects.
    fn visit(&mut self, file: &str, tree: &Tree, implied: Implied<'_>) {
        if tree.is_null() {
            return;
        }
        let Some(kind) = tree.text(&["kind"]).or(implied.kind) else {
            if self.scope == Scope::Readiness && tree.keys().eq(["status"]) {
                return self.enter_status(file, tree);
            }
            if tree.is_list() {
                return self.refuse(file, tree, "", &Fault::new(&[], "a list; put it into {kind: List, items: [...]}"));
            }
            self.without_kind = self.without_kind.saturating_add(1);
            if self.without_kind <= MOST_WITHOUT_KIND {
                self.refuse(file, tree, "", &Fault::new(&["kind"], "must be set"));
            }
            return;
        };
        match list::kind_of_items(tree, kind) {
            Some(of) => self.visit_list(file, tree, (kind, of)),
            None => self.visit_object(file, tree, kind, implied.api_version),
        }
    }

    fn visit_list(&mut self, file: &str, tree: &Tree, (kind, of): (&str, &str)) {
        let implied = match Implied::by_list(tree, of) {
            Ok(implied) => implied,
            Err(fault) => return self.refuse(file, tree, kind, &fault),
        };
        let (items, fault) = list::items(tree, implied);
        for item in items {
            self.visit(file, item, implied);
        }
        if let Some(fault) = fault {
            self.refuse(file, tree, kind, &fault);
        }
    }

    fn visit_object(&mut self, file: &str, tree: &Tree, kind: &str, implied_api: Option<&str>) {
        let api = tree.text(&["apiVersion"]).or(implied_api);
        if api.is_none() {
            let object = tree.described(kind);
            self.unversioned.push(Problem::new(file, tree.line(), &object, &["apiVersion".into()], "must be set"));
        }
        match (self.scope, kind) {
            (Scope::Devices, "Node") => self.enter::<Node>(file, tree, api),
            (Scope::Devices, "Pod") => self.enter::<Pod>(file, tree, api),
            (Scope::Devices, "PodGroup") => self.enter::<PodGroup>(file, tree, api),
            (Scope::Devices, "PodDisruptionBudget") => self.enter::<PodDisruptionBudget>(file, tree, api),
            (Scope::Devices, "PriorityClass") => self.enter::<PriorityClass>(file, tree, api),
            (Scope::Devices, "ResourceSlice") => self.enter::<ResourceSlice>(file, tree, api),
            (Scope::Devices, "DeviceClass") => self.enter::<DeviceClass>(file, tree, api),
            (Scope::Devices, "ResourceClaim") => self.enter_claim(file, tree, api),
            (Scope::Devices, "ResourceClaimTemplate") => self.enter::<ResourceClaimTemplate>(file, tree, api),
            (Scope::Devices, "DeviceTaintRule") => self.enter::<DeviceTaintRule>(file, tree, api),
            (Scope::Devices, "DaemonSet") => self.enter::<DaemonSet>(file, tree, api),
            (Scope::Devices, "Deployment") => self.enter::<Deployment>(file, tree, api),
            (Scope::Devices, "ReplicaSet") => self.enter::<ReplicaSet>(file, tree, api),
            (Scope::Devices, "StatefulSet") => self.enter::<StatefulSet>(file, tree, api),
            (Scope::Devices, "Job") => self.enter::<Job>(file, tree, api),
            (Scope::Devices, "CronJob") => self.enter::<CronJob>(file, tree, api),
            (Scope::Devices, "ClusterRole") => self.enter::<ClusterRole>(file, tree, api),
            (Scope::Devices, "ResourcePoolStatusRequest") => self.enter_request(file, tree, api),
            (Scope::Readiness, "Node") => self.enter::<GatedNode>(file, tree, api),
            (Scope::Readiness, "Pod") => self.enter::<GatedPod>(file, tree, api),
            (Scope::Readiness, "KubeletConfiguration") => self.enter::<KubeletConfiguration>(file, tree, api),
            (Scope::Readiness, "ReadinessTaintRule") => self.enter::<ReadinessTaintRule>(file, tree, api),
            (Scope::Readiness, "NodeReadinessRule") => self.enter::<NodeReadinessRule>(file, tree, api),
            _ if self.template_paths.iter().any(|path| path.kind() == kind) => self.enter_templates(file, tree, kind),
            _ => self.visit_other(file, tree, kind),
        }
    }

    /// Reads the pod templates of an object of another kind.
    fn enter_templates(&mut self, file: &str, tree: &Tree, kind: &str) {
        let object = tree.object_json();
        let paths = self.template_paths.iter().filter(|path| path.kind() == kind);
        let found: Result<Vec<TemplatedObject>, Fault> = paths
            .map(|path| path.objects(&object, self.namespace.as_deref()))
            .collect::<Result<Vec<_>, _>>()
            .map(|all| all.concat());
        match found {
            Ok(objects) => self.workloads.others.extend(objects),
            Err(fault) => self.refuse(file, tree, kind, &fault),
        }
    }

    /// Counts an object of a kind that is not read. A kind that differs from one that is read by case is a mistake.
    fn visit_other(&mut self, file: &str, tree: &Tree, kind: &str) {
        let mut known = USERS.into_iter().map(|(known, _)| known);
        match known.find(|known| kind != *known && kind.eq_ignore_ascii_case(known)) {
            Some(known) => {
                self.refuse(file, tree, kind, &Fault::new(&["kind"], format!("no such kind; write {known}")));
            }
            None => self.ignore(kind),
        }
    }

    fn ignore(&mut self, kind: &str) {
        let count = self.ignored.entry(quoted(kind, QUOTE).into_owned()).or_default();
        *count = count.saturating_add(1);
    }

    fn enter<T: Kind>(&mut self, file: &str, tree: &Tree, api: Option<&str>) {
        let api = api.map(|api| api.rsplit_once('/').unwrap_or(("", api)));
        match api {
            Some((group, _)) if !T::VERSIONS.is_empty() && group != T::GROUP => {
                return self.ignore(&format!("{} of group {group}", T::KIND));
            }
            Some((_, version)) if !T::VERSIONS.is_empty() && !T::VERSIONS.contains(&version) => {
                let (first, versions) = (T::VERSIONS.first().unwrap_or(&"v1"), T::VERSIONS.join(", "));
                // The core group has no name, and its dot stays.
                let ask = T::RESOURCE.map(|resource| format!("; ask for kubectl get {resource}.{first}.{}", T::GROUP));
                let reason = format!("version {version} can't be read, only {versions}{}", ask.unwrap_or_default());
                return self.refuse(file, tree, T::KIND, &Fault::new(&["apiVersion"], reason));
            }
            _ => {}
        }
        let mut json = tree.object_json();
        self.add_namespace(T::KIND, &mut json);
        let read = unquoted::check(&json).and_then(|()| door::enter::<T>(json, api, self.rules.0, tree));
        let read = read.and_then(|entered| Ok((read_object::<T>(entered.json.clone())?, entered)));
        match read {
            Ok((object, entered)) => {
                self.note_entered::<T>(file, tree, &entered);
                self.note_unknown_fields(file, tree, &entered.json, &object);
                if let (Some(written), Some(metadata)) = (&mut self.written, object.metadata()) {
                    entered.written.and_then(|json| written.insert((T::KIND, name_of(metadata)), json));
                }
                self.keep(file, tree, object);
            }
            Err(fault) => self.refuse(file, tree, T::KIND, &fault),
        }
    }

    /// Gives an object the namespace of those that are written without one.
    fn add_namespace(&self, kind: &str, json: &mut Value) {
        let Some(namespace) = self.namespace.as_ref().filter(|_| NAMESPACED.contains(&kind)) else { return };
        let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let is_without = metadata.get("namespace").is_none_or(|own| own.is_null() || own.as_str() == Some(""));
        if is_without {
            metadata.insert("namespace".to_owned(), namespace.as_str().into());
        }
    }

    /// Notes the form from which an object was converted, and the fields that were lost on the way.
    fn note_entered<T: Kind>(&mut self, file: &str, tree: &Tree, entered: &door::Entered) {
        let described = tree.described(T::KIND);
        if let Some(form) = &entered.converted
            && self.converted.insert((T::KIND, form.clone()))
        {
            let reason = format!("converted from {form}, as all objects that are written so");
            self.notes.push(Problem::new(file, tree.line(), &described, &[], reason));
        }
        for lost in entered.lost.iter().take(MOST_UNKNOWN_FIELDS) {
            let (path, rest) = tree.path_of(&lost.field);
            let note = Problem::new(file, tree.line_at(&path), &described, &path, lost.reason.as_str());
            let field = if rest.is_empty() { note.field } else { lost.field.clone() };
            let is_unknown_field = lost.cause == LostCause::Nowhere;
            self.notes.push(Problem { field, is_unknown_field, is_of_other_release: !is_unknown_field, ..note });
        }
        let more = entered.lost.len().saturating_sub(MOST_UNKNOWN_FIELDS);
        if more > 0 {
            let is_unknown_field = entered.lost.iter().any(|lost| lost.cause == LostCause::Nowhere);
            let note = Problem::new(file, tree.line(), &described, &[], format!("and {more} more unknown fields"));
            self.notes.push(Problem { is_unknown_field, ..note });
        }
    }

    /// Reads a claim. The allocation of one that can't be read otherwise holds its devices all the same.
    fn enter_claim(&mut self, file: &str, tree: &Tree, api: Option<&str>) {
        let problems = self.problems.len();
        self.enter::<ResourceClaim>(file, tree, api);
        let Some(problem) = self.problems.get_mut(problems) else { return };
        let Some(part) = allocation_part(&tree.object_json()) else { return };
        match read_object::<ResourceClaim>(part) {
            Ok(claim) => {
                problem.reason.push_str("; of this claim, the allocation alone is read");
                self.partly_read.insert(name_of(&claim.metadata));
                self.keep(file, tree, claim);
            }
            Err(_) => self.unread_allocations = self.unread_allocations.saturating_add(1),
        }
    }

    /// Returns the lines that mark an answer which rests on what can't be read: claims whose devices it takes for free, and
    /// other objects that it does without. Empty if all is read.
    #[must_use]
    pub fn mark(&self) -> String {
        let claims = match self.unread_allocations {
            0 => String::new(),
            1 => "1 claim can't be read: its devices count as free here\n".to_owned(),
            claims => format!("{claims} claims can't be read: their devices count as free here\n"),
        };
        let told = self.unread_allocations.saturating_add(self.partly_read.len());
        let others = match self.problems.len().saturating_sub(told) {
            0 => String::new(),
            1 => "1 object can't be read, and does not count here\n".to_owned(),
            others => format!("{others} objects can't be read, and do not count here\n"),
        };
        claims + &others
    }

    fn enter_request(&mut self, file: &str, tree: &Tree, api: Option<&str>) {
        let json = tree.object_json();
        let request = match api {
            Some("resource.k8s.io/v1alpha3") => {
                traced(json).map(|request| PoolStatusRequest::V1alpha3(Box::new(request)))
            }
            _ => traced(json).map(|request| PoolStatusRequest::Kep(Box::new(request))),
        };
        match request {
            Ok(request) => self.requests.push(request),
            Err(fault) => self.refuse(file, tree, "ResourcePoolStatusRequest", &fault),
        }
    }

    fn enter_status(&mut self, file: &str, tree: &Tree) {
        let json = tree.object_json();
        match unquoted::check(&json) {
            Ok(()) => self.readiness.statuses.push(json.pointer("/status/conditions").cloned().unwrap_or_default()),
            Err(fault) => self.refuse(file, tree, "", &fault),
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

    /// Adds the objects of a cluster that these do not replace. Pods of the cluster that wait are left out; their number is
    /// returned.
    pub fn add_objects(&mut self, objects: Self) -> usize {
        fn add<T: Kind>(manifests: &mut Manifests, objects: Vec<T>) {
            for object in objects {
                let name = object.metadata().map(name_of).unwrap_or_default();
                if !manifests.known.contains_key(&(T::KIND, name)) {
                    T::list(manifests).push(object);
                }
            }
        }
        let (waiting, pods): (Vec<Pod>, Vec<Pod>) = objects.pods.into_iter().partition(|pod| is_pending(pod, None));
        add(self, pods);
        add(self, objects.nodes);
        add(self, objects.slices);
        add(self, objects.classes);
        add(self, objects.claims);
        add(self, objects.claim_templates);
        add(self, objects.taint_rules);
        add(self, objects.budgets);
        add(self, objects.priority_classes);
        waiting.len()
    }

    /// Returns the number of objects of a kind that were read.
    #[must_use]
    pub fn number_of(&self, kind: &str) -> usize {
        self.counts().into_iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| count)
    }

    /// Returns the number of objects of each kind that is read.
    const fn counts(&self) -> [(&'static str, usize); 18] {
        [
            (Node::KIND, self.nodes.len()),
            (Pod::KIND, self.pods.len()),
            (PodGroup::KIND, self.pod_groups.len()),
            (PodDisruptionBudget::KIND, self.budgets.len()),
            (PriorityClass::KIND, self.priority_classes.len()),
            (ResourceSlice::KIND, self.slices.len()),
            (DeviceClass::KIND, self.classes.len()),
            (ResourceClaim::KIND, self.claims.len()),
            (ResourceClaimTemplate::KIND, self.claim_templates.len()),
            (DaemonSet::KIND, self.workloads.daemon_sets.len()),
            (Deployment::KIND, self.workloads.deployments.len()),
            (ReplicaSet::KIND, self.workloads.replica_sets.len()),
            (StatefulSet::KIND, self.workloads.stateful_sets.len()),
            (Job::KIND, self.workloads.jobs.len()),
            (CronJob::KIND, self.workloads.cron_jobs.len()),
            (DeviceTaintRule::KIND, self.taint_rules.len()),
            (ClusterRole::KIND, self.roles.len()),
            ("ResourcePoolStatusRequest", self.requests.len()),
        ]
    }

    fn keep<T: Kind>(&mut self, file: &str, tree: &Tree, object: T) {
        // Objects without a name are not told apart, and are all kept.
        let Some(name) = object.metadata().map(name_of) else { return T::list(self).push(object) };
        let place = Problem::new(file, tree.line(), "", &[], "").place();
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
            let sequence = self.known.len();
            self.known.insert((T::KIND, name), Known { index, sequence, place });
            T::list(self).push(object);
        }
    }

    fn refuse(&mut self, file: &str, tree: &Tree, kind: &str, fault: &Fault) {
        let (line, object) = (tree.line_at(&fault.path), tree.described(kind));
        self.problems.push(Problem::new(file, line, &object, &fault.path, fault.reason.as_str()));
    }

    fn note_unknown_fields<T: Kind>(&mut self, file: &str, tree: &Tree, given: &Value, object: &T) {
        let Some(read) = object.to_json() else { return };
        let OnlyIn { filled, empty } = fields_only_in(given, &read);
        let unknown = filled.into_iter().chain(unknown_empty_fields::<T>(given, empty));
        let mut unknown = unknown.filter(|path| !may_grow::<T>(path));
        let described = tree.described(T::KIND);
        for path in unknown.by_ref().take(MOST_UNKNOWN_FIELDS) {
            let user = FIELD_USERS.iter().find(|(field, _)| *field == path_text(&path));
            let reason = match user {
                Some((_, user)) => format!("ignored; {user} reads it"),
                None => "unknown field, ignored".to_owned(),
            };
            let note = Problem::new(file, tree.line_at(&path), &described, &path, reason);
            self.notes.push(Problem { is_unknown_field: user.is_none(), ..note });
        }
        let more = unknown.count();
        if more > 0 {
            let note = Problem::new(file, tree.line(), &described, &[], format!("and {more} more unknown fields"));
            self.notes.push(Problem { is_unknown_field: true, ..note });
        }
    }
}

fn ignored_lines(program: &str, kinds: &BTreeMap<String, usize>) -> Vec<String> {
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
