//! Admission: what a real API server adds to new pods and nodes before it checks them, and what it keeps out.

use std::sync::Arc;

use object_patches::Object;
use serde_json::{Value, json};

use crate::defaults::entries;
use crate::kinds::Kind;
use crate::random::Random;
use crate::refusal::Refusal;

/// Plugins that can be turned off, by the names of kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Plugin {
    /// A pod needs its service account, and gets a volume with a token
    ServiceAccount,
    /// A new node has the taint node.kubernetes.io/not-ready
    TaintNodesByCondition,
    /// A pod has the number of its priority class
    Priority,
    /// A pod stays five minutes on a node that is not ready
    DefaultTolerationSeconds,
}

/// Taint of a node that nobody has called ready.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Folder of a pod's token.
const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Annotation of pods that a kubelet has made from files.
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

/// Policy of a class, or a pod, that says nothing else.
const LOWER: &str = "PreemptLowerPriority";

/// Priority classes that every cluster has.
const CLASSES: [(&str, i64); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// New object with what admission looks at.
pub(crate) struct Newcomer<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) object: &'a mut Value,
    /// Returns the service account of a name, in the namespace of the object.
    pub(crate) account: &'a dyn Fn(&str) -> Option<Value>,
    /// Returns all priority classes.
    pub(crate) classes: &'a dyn Fn() -> Vec<Arc<Value>>,
    pub(crate) random: &'a mut Random,
}

/// Admits a new object.
///
/// # Errors
/// A plugin keeps it out.
pub(crate) fn admit(off: &[Plugin], newcomer: &mut Newcomer<'_>) -> Result<(), Refusal> {
    let is_on = |plugin| !off.contains(&plugin);
    match newcomer.kind.name {
        "Node" if is_on(Plugin::TaintNodesByCondition) => not_ready(newcomer.object),
        "Pod" => {
            if is_on(Plugin::ServiceAccount) {
                service_account(newcomer)?;
            }
            if is_on(Plugin::Priority) {
                priority(newcomer)?;
            }
            if is_on(Plugin::DefaultTolerationSeconds) {
                tolerations(newcomer.object);
            }
        }
        _ => {}
    }
    Ok(())
}

fn not_ready(node: &mut Value) {
    let spec = node.fields().entry("spec").or_insert_with(|| json!({}));
    let has_taint = entries(spec, "taints").iter().any(|taint| taint.text("/key") == NOT_READY);
    if let (false, Value::Array(taints)) = (has_taint, spec.fields().entry("taints").or_insert_with(|| json!([]))) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

fn service_account(newcomer: &mut Newcomer<'_>) -> Result<(), Refusal> {
    let refused = |object: &Value, detail: &str| Refusal::forbidden(newcomer.kind, object.metadata("name"), detail);
    let named = newcomer.object.text("/spec/serviceAccountName").to_owned();
    if newcomer.object.pointer(MIRROR).is_some() {
        let message = "a mirror pod may not reference service accounts";
        return if named.is_empty() { Ok(()) } else { Err(refused(newcomer.object, message)) };
    }
    let name = if named.is_empty() { "default".to_owned() } else { named };
    let Some(account) = (newcomer.account)(&name) else {
        let namespace = newcomer.object.metadata("namespace");
        let detail = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        return Err(refused(newcomer.object, &detail));
    };
    let spec = newcomer.object.fields().entry("spec").or_insert_with(|| json!({}));
    spec.set_field("serviceAccountName", name.clone());
    spec.set_field("serviceAccount", name);
    let wanted = [&*spec, &account].into_iter().find_map(|it| it.get("automountServiceAccountToken"));
    if wanted != Some(&json!(false)) {
        mount_token(spec, newcomer.random);
    }
    let secrets =
        account.get("imagePullSecrets").filter(|secrets| secrets.as_array().is_some_and(|list| !list.is_empty()));
    if let (Some(secrets), true) = (secrets, entries(spec, "imagePullSecrets").is_empty()) {
        spec.set_field("imagePullSecrets", secrets.clone());
    }
    Ok(())
}

/// Mounts a token in each container that has nothing at its place.
fn mount_token(spec: &mut Value, random: &mut Random) {
    let name = random.name("kube-api-access-");
    let mut is_used = false;
    for list in ["initContainers", "containers"] {
        for container in entries(spec, list) {
            let mounts = container.fields().entry("volumeMounts").or_insert_with(|| json!([]));
            let Value::Array(mounts) = mounts else { continue };
            if !mounts.iter().any(|mount| mount.text("/mountPath") == TOKEN_FOLDER) {
                mounts.push(json!({"mountPath": TOKEN_FOLDER, "name": name, "readOnly": true}));
                is_used = true;
            }
        }
    }
    if let (true, Value::Array(volumes)) = (is_used, spec.fields().entry("volumes").or_insert_with(|| json!([]))) {
        let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
        volumes.push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [{"fieldRef": field, "path": "namespace"}]}},
        ]}}));
    }
}

/// Priority that admission gives a pod.
struct Computed {
    /// Name of the class; empty if there is no default.
    class: String,
    number: i64,
    policy: String,
}

impl Computed {
    /// Finds the class of a name; without one the default with the lowest value.
    fn of(name: &str, classes: &[Arc<Value>]) -> Option<Self> {
        if let Some((class, number)) = CLASSES.iter().find(|(class, _)| *class == name) {
            return Some(Self { class: (*class).to_owned(), number: *number, policy: LOWER.to_owned() });
        }
        let value = |class: &Value| class.pointer("/value").and_then(Value::as_i64).unwrap_or_default();
        let is_default = |class: &&Arc<Value>| class.pointer("/globalDefault") == Some(&json!(true));
        let found = if name.is_empty() {
            classes.iter().filter(is_default).min_by_key(|class| value(class))
        } else {
            classes.iter().find(|class| class.metadata("name") == name)
        };
        match found {
            None if name.is_empty() => Some(Self { class: String::new(), number: 0, policy: LOWER.to_owned() }),
            None => None,
            Some(class) => {
                let policy = Some(class.text("/preemptionPolicy")).filter(|policy| !policy.is_empty());
                let policy = policy.unwrap_or(LOWER).to_owned();
                Some(Self { class: class.metadata("name").to_owned(), number: value(class), policy })
            }
        }
    }
}

fn priority(newcomer: &mut Newcomer<'_>) -> Result<(), Refusal> {
    let name = newcomer.object.text("/spec/priorityClassName").to_owned();
    let refused = |detail: &str| Refusal::forbidden(newcomer.kind, newcomer.object.metadata("name"), detail);
    let Some(Computed { class, number, policy }) = Computed::of(&name, &(newcomer.classes)()) else {
        return Err(refused(&format!("no PriorityClass with name {name} was found")));
    };
    let given = newcomer.object.pointer("/spec/priority").and_then(Value::as_i64);
    if let Some(given) = given.filter(|given| *given != number) {
        return Err(refused(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed \
             {number} from the given PriorityClass name"
        )));
    }
    let given = newcomer.object.text("/spec/preemptionPolicy").to_owned();
    if !given.is_empty() && given != policy {
        return Err(refused(&format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller \
             computed {policy} from the given PriorityClass name"
        )));
    }
    let spec = newcomer.object.fields().entry("spec").or_insert_with(|| json!({}));
    if !class.is_empty() {
        spec.set_field("priorityClassName", class);
    }
    spec.set_field("priority", number);
    spec.set_field("preemptionPolicy", policy);
    Ok(())
}

/// Lets a pod stay for a while on a node that is gone or not ready, if it says nothing about that.
fn tolerations(pod: &mut Value) {
    let spec = pod.fields().entry("spec").or_insert_with(|| json!({}));
    let Value::Array(tolerations) = spec.fields().entry("tolerations").or_insert_with(|| json!([])) else { return };
    let added: Vec<Value> = [NOT_READY, "node.kubernetes.io/unreachable"]
        .into_iter()
        .filter(|key| !tolerations.iter().any(|toleration| tolerates(toleration, key)))
        .map(|key| json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}))
        .collect();
    tolerations.extend(added);
}

fn tolerates(toleration: &Value, key: &str) -> bool {
    ["", key].contains(&toleration.text("/key")) && ["", "NoExecute"].contains(&toleration.text("/effect"))
}
