//! Rules of a pod about what a node is, whatever is in use there.
//!
//! Source: the plugins `NodeUnschedulable`, `TaintToleration` and `NodeAffinity` of kube-scheduler 1.37, in this order.

use dra_attrs::{TolerationOperators, first_untolerated_taint, node_affinity_matches};
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec, Taint, Toleration};

use super::misfit::Misfit;

/// Taint that stands for a cordoned node where a pod tolerates it.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Tolerations, node selector and required node affinity of a pod.
///
/// ```
/// use dra_alloc::fit::PodRules;
/// let pod = serde_json::from_str(r#"{"spec": {"containers": [], "nodeSelector": {"zone": "a"}}}"#)?;
/// let node = serde_json::from_str(r#"{"metadata": {"labels": {"zone": "b"}}}"#)?;
/// let misfit = PodRules::new(&pod).misfit(&node).ok_or("another zone")?;
/// assert_eq!(misfit.to_string(), "node(s) didn't match Pod's node affinity/selector");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PodRules<'p> {
    spec: Option<&'p PodSpec>,
    operators: TolerationOperators,
}

impl<'p> PodRules<'p> {
    /// Reads the rules of a pod.
    #[must_use]
    pub fn new(pod: &'p Pod) -> Self {
        Self { spec: pod.spec.as_ref(), operators: TolerationOperators::default() }
    }

    /// Sets the operators of tolerations that the scheduler knows.
    #[must_use]
    pub const fn with_toleration_operators(self, operators: TolerationOperators) -> Self {
        Self { operators, ..self }
    }

    /// Returns the first reason why the pod may not use a node: it is cordoned, a taint, labels. Such a verdict changes with the
    /// node alone.
    ///
    /// # Complexity
    /// Linear in the taints times the tolerations, and in the requirements of the affinity.
    #[must_use]
    pub fn misfit(&self, node: &Node) -> Option<Misfit> {
        let spec = node.spec.as_ref();
        if spec.and_then(|spec| spec.unschedulable).unwrap_or_default() && !self.tolerates_cordon() {
            return Some(Misfit::Unschedulable);
        }
        let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        if let Some(taint) = self.untolerated(taints) {
            return Some(Misfit::UntoleratedTaint { taint: taint.clone() });
        }
        (!self.is_selected(node)).then_some(Misfit::NotSelected)
    }

    /// Returns true if the node selector and the required node affinity of the pod admit a node, whatever its taints are: a pod
    /// of a daemon set stays there.
    #[must_use]
    pub fn is_selected(&self, node: &Node) -> bool {
        self.spec.is_none_or(|spec| is_selected(spec, node))
    }

    fn untolerated<'n>(&self, taints: &'n [Taint]) -> Option<&'n Taint> {
        let tolerations: &[Toleration] = self.spec.and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
        first_untolerated_taint(taints, tolerations, self.operators)
    }

    fn tolerates_cordon(&self) -> bool {
        let cordon = Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        self.untolerated(&[cordon]).is_none()
    }
}

fn is_selected(pod: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let has_label = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    pod.node_selector.iter().flatten().all(has_label)
        && required.is_none_or(|required| node_affinity_matches(required, node))
}
