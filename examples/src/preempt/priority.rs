//! Priorities of pods, as the admission of an API server writes them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;

/// Priority classes that each cluster has.
const SYSTEM: [(&str, i32); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Priority classes of a cluster.
///
/// ```
/// use examples::preempt::Priorities;
/// let class = serde_json::from_value(serde_json::json!({"metadata": {"name": "training"}, "value": 100}))?;
/// let priorities = Priorities::new([&class]);
/// let mut pod = serde_json::from_value(serde_json::json!({"spec": {"containers": [], "priorityClassName": "training"}}))?;
/// assert!(priorities.admit(&mut pod));
/// assert_eq!(pod.spec.and_then(|spec| spec.priority), Some(100));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Priorities<'c> {
    classes: BTreeMap<&'c str, &'c PriorityClass>,
    /// The class of pods that name none.
    default: Option<&'c PriorityClass>,
}

impl<'c> Priorities<'c> {
    /// Takes the classes of a cluster. Of several defaults the one with the lowest value counts, as in the admission.
    pub fn new(classes: impl IntoIterator<Item = &'c PriorityClass>) -> Self {
        let classes: BTreeMap<&str, &PriorityClass> =
            classes.into_iter().map(|class| (class.metadata.name.as_deref().unwrap_or_default(), class)).collect();
        let defaults = classes.values().copied().filter(|class| class.global_default == Some(true));
        let default = defaults.min_by_key(|class| class.value.unwrap_or_default());
        Self { classes, default }
    }

    /// Writes the priority and the preemption policy of a pod that has no priority yet. Returns false if the pod names a class
    /// that is not there, whose pods an API server refuses; they have priority 0 here.
    pub fn admit(&self, pod: &mut Pod) -> bool {
        let Some(spec) = pod.spec.as_mut().filter(|spec| spec.priority.is_none()) else { return true };
        let name = spec.priority_class_name.as_deref().filter(|name| !name.is_empty());
        let class = match name {
            None => self.default,
            Some(name) => {
                if let Some((_, value)) = SYSTEM.iter().find(|(system, _)| *system == name) {
                    spec.priority = Some(*value);
                    return true;
                }
                let Some(class) = self.classes.get(name) else { return false };
                Some(*class)
            }
        };
        if let Some(class) = class {
            spec.priority = Some(class.value.unwrap_or_default());
            spec.preemption_policy = spec.preemption_policy.take().or_else(|| class.preemption_policy.clone());
        }
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_pod_gets_the_value_of_its_class() {
        let classes: [PriorityClass; 4] = from_value(json!([
            {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"},
            {"metadata": {"name": "usual"}, "value": 7, "globalDefault": true},
            {"metadata": {"name": "dear"}, "value": 8, "globalDefault": true},
            {"metadata": {"name": "low"}, "value": -5},
        ]))
        .unwrap();
        let priorities = Priorities::new(&classes);
        let table = [
            (json!({"priorityClassName": "high"}), Some(100), Some("Never"), true),
            (json!({"priorityClassName": "low"}), Some(-5), None, true),
            (json!({}), Some(7), None, true),
            (json!({"priorityClassName": "none"}), None, None, false),
            (json!({"priorityClassName": "system-node-critical"}), Some(2_000_001_000), None, true),
            (json!({"priorityClassName": "high", "priority": 1}), Some(1), None, true),
        ];
        for (mut spec, priority, policy, is_known) in table {
            spec["containers"] = json!([]);
            let mut pod: Pod = from_value(json!({"spec": spec})).unwrap();
            assert_eq!(priorities.admit(&mut pod), is_known, "{spec}");
            let spec = pod.spec.unwrap();
            assert_eq!((spec.priority, spec.preemption_policy.as_deref()), (priority, policy), "{spec:?}");
        }
    }
}
