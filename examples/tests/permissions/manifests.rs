//! Manifests in examples/deploy, and the rights that their roles grant.

use std::collections::BTreeSet;
use std::fs;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value};

use super::ROOT;
use super::recorder::Right;

/// Programs with a file of that name in examples/deploy.
pub(super) const PROGRAMS: [(&str, &str); 6] = [
    ("autoscaler", env!("CARGO_BIN_EXE_autoscaler")),
    ("driver", env!("CARGO_BIN_EXE_driver")),
    ("kubelet", env!("CARGO_BIN_EXE_kubelet")),
    ("node-agent", env!("CARGO_BIN_EXE_node-agent")),
    ("pool-status", env!("CARGO_BIN_EXE_pool-status")),
    ("scheduler", env!("CARGO_BIN_EXE_scheduler")),
];

/// Returns the objects of a program's manifests.
pub(super) fn manifests(program: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{ROOT}/deploy/{program}.yaml")).unwrap();
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Returns the only object of a kind.
pub(super) fn only<T: DeserializeOwned>(objects: &[Value], kind: &str) -> Option<T> {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let object = found.next().cloned();
    assert!(found.next().is_none(), "{kind}: more than one");
    object.map(|object| from_value(object).unwrap())
}

fn rights(rules: &[PolicyRule], namespace: Option<&str>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    assert!(![group, resource, verb].iter().any(|text| text.contains('*')), "a rule for all: {rule:?}");
                    let [group, resource, verb] = [group, resource, verb].map(String::clone);
                    let namespace = namespace.map(str::to_owned);
                    assert!(rights.insert(Right { group, resource, verb, namespace }), "twice: {rule:?}");
                }
            }
        }
    }
    rights
}

/// Returns what the roles of a program grant.
pub(super) fn granted(program: &str) -> BTreeSet<Right> {
    let objects = manifests(program);
    let role: ClusterRole = only(&objects, "ClusterRole").unwrap();
    let mut granted = rights(&role.rules.unwrap(), None);
    if let Some(role) = only::<Role>(&objects, "Role") {
        granted.extend(rights(&role.rules.unwrap(), role.metadata.namespace.as_deref()));
    }
    granted
}

/// Adds what an API server asks for beside a write of `resourceclaims/status`, by what changes there.
pub(super) fn with_parts_of_status(mut used: BTreeSet<Right>, program: &str) -> BTreeSet<Right> {
    let (part, prefix) = if program == "driver" {
        ("resourceclaims/driver", "associated-node:")
    } else {
        ("resourceclaims/binding", "")
    };
    let writes: Vec<Right> = used.iter().filter(|right| right.resource == "resourceclaims/status").cloned().collect();
    for Right { group, verb, namespace, .. } in writes {
        used.insert(Right { group, resource: part.to_owned(), verb: format!("{prefix}{verb}"), namespace });
    }
    used
}

/// Forgets namespaces of rights that a cluster role grants.
pub(super) fn as_granted(used: BTreeSet<Right>, granted: &BTreeSet<Right>) -> BTreeSet<Right> {
    let everywhere = |right: Right| {
        let anywhere = Right { namespace: None, ..right.clone() };
        if granted.contains(&anywhere) { anywhere } else { right }
    };
    used.into_iter().map(everywhere).collect()
}

pub(super) fn texts(rights: &BTreeSet<Right>) -> Vec<String> {
    let text = |right: &Right| {
        let namespace = right.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{} {}.{}{namespace}", right.verb, right.resource, right.group)
    };
    rights.iter().map(text).collect()
}
