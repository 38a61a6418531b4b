//! Answers that tell clients which kinds there are: discovery, and an `OpenAPI` that names the kinds and no fields.

use dra_attrs::Profile;
use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::scale::SCALED;
use crate::served::Served;

/// Verbs of every kind.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Version that the server says it is.
#[derive(Clone, Debug)]
pub(crate) struct ServerVersion {
    minor: &'static str,
    /// The release before.
    before: String,
}

impl ServerVersion {
    /// Returns the version of a release. A server by the texts of the KEPs says that it is the newest.
    pub(crate) fn of(profile: Profile) -> Self {
        let [.., newest] = Profile::RELEASES;
        let minor = |profile: Profile| profile.name().strip_prefix("v1.");
        let minor = minor(profile).or_else(|| minor(newest)).unwrap_or_default();
        let before = minor.parse::<u32>().unwrap_or_default().saturating_sub(1).to_string();
        Self { minor, before }
    }

    pub(crate) fn info(&self) -> Value {
        json!({
            "major": "1", "minor": self.minor, "gitVersion": format!("v1.{}.0", self.minor),
            "emulationMajor": "1", "emulationMinor": self.minor,
            "minCompatibilityMajor": "1", "minCompatibilityMinor": self.before, "gitCommit": "", "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
        })
    }
}

/// Answers a request for something else than objects; `None` if the path is one of objects.
pub(crate) fn answer(path: &[&str], version: &ServerVersion, served: &Served) -> Option<Result<Value, Refusal>> {
    Some(Ok(match path {
        ["version"] => version.info(),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let groups = served.versions().into_iter().filter(|(group, _)| !group.is_empty());
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.map(group).collect::<Vec<_>>()})
        }
        ["apis", name] => {
            let found = served.versions().into_iter().find(|(group, _)| group == name);
            return Some(found.map(group).ok_or_else(Refusal::no_path));
        }
        ["api", version] => return Some(resources(served, "", version)),
        ["apis", group, version] => return Some(resources(served, group, version)),
        ["openapi", "v3"] => open_api_index(served),
        ["openapi", "v3", "api", version] => return Some(open_api(served, "", version)),
        ["openapi", "v3", "apis", group, version] => return Some(open_api(served, group, version)),
        ["openapi", ..] => return Some(Err(Refusal::no_path())),
        [] => {
            json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"]})
        }
        _ => return None,
    }))
}

fn group((name, versions): (&str, Vec<&str>)) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let preferred = versions.first().map(version);
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(), "preferredVersion": preferred,
    })
}

fn resources(served: &Served, group: &str, version: &str) -> Result<Value, Refusal> {
    let mut resources = Vec::new();
    for kind in served.of_version(group, version) {
        let is_namespaced = kind.is_namespaced();
        resources.push(json!({
            "name": kind.plural, "singularName": kind.name.to_lowercase(), "namespaced": is_namespaced,
            "kind": kind.name, "verbs": VERBS, "shortNames": short_names(kind, served.profile()),
        }));
        if kind.has_status() {
            resources.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": is_namespaced,
                "kind": kind.name, "verbs": ["get", "patch", "update"],
            }));
        }
        if SCALED.contains(&kind.name) {
            resources.push(json!({
                "name": format!("{}/scale", kind.plural), "singularName": "", "namespaced": true, "group": "autoscaling",
                "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
            }));
        }
        if kind.name == "Pod" {
            resources.push(json!({
                "name": "pods/binding", "singularName": "", "namespaced": true, "kind": "Binding", "verbs": ["create"],
            }));
            resources.push(json!({
                "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
                "kind": "Eviction", "verbs": ["create"],
            }));
        }
    }
    if resources.is_empty() {
        return Err(Refusal::no_path());
    }
    let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}))
}

/// Returns the short names of a kind. Requests for the status of pools have one in the text of their KEP alone.
fn short_names(kind: &Kind, profile: Profile) -> &'static [&'static str] {
    match kind.name {
        "ResourcePoolStatusRequest" => poolstatus::kep::ResourcePoolStatusRequest::short_names(profile),
        _ => kind.short,
    }
}

fn root(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

fn open_api_index(served: &Served) -> Value {
    let entry = |kind: &Kind| (root(kind), json!({"serverRelativeURL": format!("/openapi/v3/{}", root(kind))}));
    json!({"paths": served.kinds().map(entry).collect::<Map<_, _>>()})
}

/// Returns what kubectl looks at before it writes: for each kind, that the server checks fields and previews writes.
fn open_api(served: &Served, group: &str, version: &str) -> Result<Value, Refusal> {
    let mut paths = Map::new();
    for kind in served.of_version(group, version) {
        let name = json!({"group": kind.group, "version": kind.version, "kind": kind.name});
        let parameter =
            |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
        let operation = |action: &str| {
            json!({
                "x-kubernetes-action": action, "x-kubernetes-group-version-kind": name,
                "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
                "responses": {"200": {"description": "OK"}},
            })
        };
        let namespace = if kind.is_namespaced() { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{namespace}{}", root(kind), kind.plural);
        paths.insert(path.clone(), json!({"post": operation("post")}));
        paths.insert(path + "/{name}", json!({"patch": operation("patch"), "put": operation("put")}));
    }
    if paths.is_empty() {
        return Err(Refusal::no_path());
    }
    let info = json!({"title": "stand-in for an API server", "version": "unversioned"});
    Ok(
        json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas(served, group, version)}}),
    )
}

/// Returns a schema for each kind that allows every field.
fn schemas(served: &Served, group: &str, version: &str) -> Map<String, Value> {
    let schema = |kind: &'static Kind| {
        let name = json!([{"group": kind.group, "version": kind.version, "kind": kind.name}]);
        let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
        let key = format!("io.k8s.api.{package}.{}.{}", kind.version, kind.name);
        (key, json!({"type": "object", "x-kubernetes-group-version-kind": name}))
    };
    served.of_version(group, version).map(schema).collect()
}
