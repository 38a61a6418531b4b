//! Rights of service accounts, by the roles and bindings in manifests, with the words of a real server.
//!
//! The token of a request is the name of its account, `system:serviceaccount:NAMESPACE:NAME`, and the node that it is bound to
//! after an `@`, if any. Who sends no token is the cluster's administrator.

use std::collections::BTreeMap;

use dra_attrs::{FieldError, FieldErrors, FieldPath};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use object_patches::Object;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::request::Target;

const PREFIX: &str = "system:serviceaccount:";

/// Paths that everybody with an account may read.
const DISCOVERY: [&str; 7] = ["api", "apis", "healthz", "livez", "openapi", "readyz", "version"];

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    name: String,
    node: String,
}

impl User {
    /// Returns who sends a request; none for the administrator.
    ///
    /// # Errors
    /// The token is no account's.
    pub(crate) fn of(authorization: &str) -> Result<Option<Self>, Refusal> {
        let Some(token) = authorization.strip_prefix("Bearer ") else { return Ok(None) };
        let token = token.trim();
        let (name, node) = token.split_once('@').unwrap_or((token, ""));
        match name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':')) {
            Some((namespace, account)) if !namespace.is_empty() && !account.is_empty() => {
                Ok(Some(Self { name: name.to_owned(), node: node.to_owned() }))
            }
            _ => Err(Refusal::new(401, "Unauthorized", "Unauthorized")),
        }
    }
}

/// Attributes of a request, as roles name them.
#[derive(Clone, Debug)]
struct Attributes<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

/// Rule that an account has, in one namespace or in all.
#[derive(Clone, Debug)]
struct Granted {
    namespace: Option<String>,
    rule: PolicyRule,
}

/// Rights of all accounts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights(BTreeMap<String, Vec<Granted>>);

/// Roles and bindings as they are read.
#[derive(Debug, Default)]
struct Found {
    roles: BTreeMap<(String, String), Vec<PolicyRule>>,
    bindings: Vec<(Option<String>, RoleRef, Vec<Subject>)>,
}

impl Rights {
    /// Reads manifests. Objects of other kinds are passed over.
    ///
    /// # Errors
    /// A text is no YAML, a binding names a role that is in none of them, or a subject that is no service account.
    pub(crate) fn read(texts: &[String]) -> Result<Self, String> {
        let mut found = Found::default();
        for document in texts.iter().flat_map(|text| text.split("\n---")) {
            let object: Value = serde_saphyr::from_str(document).map_err(|error| error.to_string())?;
            found.take(&object)?;
        }
        let mut rights = Self::default();
        for (namespace, reference, subjects) in found.bindings {
            let place = if reference.kind == "Role" { namespace.clone().unwrap_or_default() } else { String::new() };
            let rules = found.roles.get(&(place, reference.name.clone()));
            let rules = rules.ok_or_else(|| format!("{} {:?} is in no file", reference.kind, reference.name))?;
            for Subject { kind, name, namespace: of, .. } in subjects {
                if kind != "ServiceAccount" {
                    return Err(format!("{kind} {name:?}: rights are here those of service accounts alone"));
                }
                let user = format!("{PREFIX}{}:{name}", of.unwrap_or_default());
                let granted = rules.iter().map(|rule| Granted { namespace: namespace.clone(), rule: rule.clone() });
                rights.0.entry(user).or_default().extend(granted);
            }
        }
        Ok(rights)
    }

    fn allows(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        let has = |list: Option<&Vec<String>>, text: &str| {
            list.is_some_and(|list| list.iter().any(|entry| entry == "*" || entry == text))
        };
        let resource = wanted.full_resource();
        self.0.get(&user.name).into_iter().flatten().any(|Granted { namespace, rule }| {
            let is_here = namespace.as_ref().is_none_or(|namespace| namespace == wanted.namespace);
            let is_named = rule
                .resource_names
                .as_ref()
                .is_none_or(|names| names.is_empty() || names.iter().any(|name| name == wanted.name));
            is_here
                && is_named
                && has(Some(&rule.verbs), wanted.verb)
                && has(rule.api_groups.as_ref(), wanted.group)
                && has(rule.resources.as_ref(), &resource)
        })
    }

    fn check(&self, user: &User, wanted: &Attributes<'_>) -> Result<(), String> {
        if self.allows(user, wanted) { Ok(()) } else { Err(wanted.refusal(user)) }
    }

    /// Checks the right to a request for objects.
    ///
    /// # Errors
    /// No role of the user has it.
    pub(crate) fn check_request(&self, user: &User, verb: &str, target: &Target) -> Result<(), Refusal> {
        let wanted = Attributes {
            verb,
            group: target.kind.group,
            resource: target.kind.plural,
            subresource: target.subresource.name(),
            namespace: target.namespace.as_deref().unwrap_or_default(),
            name: target.name.as_deref().unwrap_or_default(),
        };
        self.check(user, &wanted).map_err(|message| Refusal::no_right(target, message))
    }

    /// Checks the right to a path that is none of objects.
    ///
    /// # Errors
    /// No role of the user has it.
    pub(crate) fn check_path(&self, user: &User, path: &str) -> Result<(), Refusal> {
        let is_granted = |granted: &Granted| {
            let urls = granted.rule.non_resource_urls.iter().flatten();
            urls.into_iter().any(|url| url == path)
                && granted.rule.verbs.iter().any(|verb| verb == "get" || verb == "*")
        };
        let first = path.split('/').nth(1).unwrap_or_default();
        if DISCOVERY.contains(&first) || self.0.get(&user.name).into_iter().flatten().any(is_granted) {
            return Ok(());
        }
        let message = format!("forbidden: User {:?} cannot get path {path:?}", user.name);
        Err(Refusal::new(403, "Forbidden", message))
    }

    /// Checks the rights to what changes of a claim's status: since Kubernetes 1.36, each part has one of its own.
    pub(crate) fn check_claim_status(&self, user: &User, verb: &str, old: &Value, new: &Value) -> FieldErrors {
        let at = FieldPath::new("status");
        let mut errors = FieldErrors::new();
        let differs = |pointer: &str| old.pointer(pointer) != new.pointer(pointer);
        let is_bound = differs("/status/allocation") || differs("/status/reservedFor");
        if let (true, Err(message)) = (is_bound, self.check(user, &of_claims(verb, "binding", "", ""))) {
            errors.push(FieldError::forbidden(
                &at,
                format!(
                    "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                         verb=\"{verb}\" permission: {message}"
                ),
            ));
        }
        let is_near = !user.node.is_empty() && user.node == allocated_node(new);
        let prefixes: &[&str] = if is_near { &["associated-node", "arbitrary-node"] } else { &["arbitrary-node"] };
        let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}:{verb}")).collect();
        for driver in changed_drivers(old, new) {
            let of = |verb: &String| self.check(user, &of_claims(verb, "driver", new.metadata("namespace"), &driver));
            let outcomes: Vec<Result<(), String>> = verbs.iter().map(of).collect();
            if let (false, Some(Err(message))) = (outcomes.iter().any(Result::is_ok), outcomes.first()) {
                let verbs = verbs.join(" ");
                errors.push(FieldError::forbidden(
                    &at,
                    format!(
                        "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" permission: \
                         {message}"
                    ),
                ));
            }
        }
        errors
    }
}

/// Returns the attributes of a write to a part of claims that has a right of its own.
const fn of_claims<'a>(verb: &'a str, subresource: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes { verb, group: "resource.k8s.io", resource: "resourceclaims", subresource, namespace, name }
}

impl Attributes<'_> {
    fn full_resource(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.resource, self.subresource)
    }

    fn refusal(&self, user: &User) -> String {
        let Attributes { verb, group, resource, namespace, name, .. } = self;
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let dot = if group.is_empty() { "" } else { "." };
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        format!(
            "{resource}{dot}{group}{named} is forbidden: User {:?} cannot {verb} resource {:?} in API group {group:?} {place}",
            user.name,
            self.full_resource()
        )
    }
}

impl Found {
    fn take(&mut self, object: &Value) -> Result<(), String> {
        let named = |metadata: &Value| (metadata.text("/namespace").to_owned(), metadata.text("/name").to_owned());
        let (namespace, name) = named(object.get("metadata").unwrap_or(&Value::Null));
        match object.text("/kind") {
            "ClusterRole" => {
                let role: ClusterRole = typed(object)?;
                self.roles.insert((String::new(), name), role.rules.unwrap_or_default());
            }
            "Role" => {
                let role: Role = typed(object)?;
                self.roles.insert((namespace, name), role.rules.unwrap_or_default());
            }
            "ClusterRoleBinding" => {
                let binding: ClusterRoleBinding = typed(object)?;
                self.bindings.push((None, binding.role_ref, binding.subjects.unwrap_or_default()));
            }
            "RoleBinding" => {
                let binding: RoleBinding = typed(object)?;
                self.bindings.push((Some(namespace), binding.role_ref, binding.subjects.unwrap_or_default()));
            }
            _ => {}
        }
        Ok(())
    }
}

fn typed<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    let name = object.metadata("name");
    serde_path_to_error::deserialize(object.clone())
        .map_err(|error| format!("{} {name:?}: {error}", object.text("/kind")))
}

/// Returns the only node on which a claim is allocated; empty if it is another kind of selection.
fn allocated_node(claim: &Value) -> &str {
    let terms = claim.pointer("/status/allocation/nodeSelector/nodeSelectorTerms").and_then(Value::as_array);
    let Some([term]) = terms.map(Vec::as_slice) else { return "" };
    let field = term.pointer("/matchFields/0").unwrap_or(&Value::Null);
    let is_one = term.get("matchExpressions").is_none()
        && term.pointer("/matchFields/1").is_none()
        && (field.text("/key"), field.text("/operator")) == ("metadata.name", "In")
        && field.pointer("/values/1").is_none();
    if is_one { field.text("/values/0") } else { "" }
}

/// Returns the drivers of which entries in `status.devices` were added, changed or removed.
fn changed_drivers(old: &Value, new: &Value) -> Vec<String> {
    let devices = |claim: &Value| -> Vec<Value> {
        claim.pointer("/status/devices").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (old, new) = (devices(old), devices(new));
    let of = |some: &[Value], others: &[Value]| -> Vec<String> {
        let changed = some.iter().filter(|device| !others.contains(device));
        changed.map(|device| device.text("/driver").to_owned()).collect()
    };
    let mut drivers = [of(&new, &old), of(&old, &new)].concat();
    drivers.sort();
    drivers.dedup();
    drivers
}
