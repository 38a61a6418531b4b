//! Question whose answer is followed: which changes may make it another one, and what of the cluster it is made from.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::claims::ClaimKey;
use dra_live::cluster_view::{ClusterView, place};
use dra_live::touched::{Nodes, Place, Touched};
use examples::candidates::{claims_of, is_pending};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::super::answer::Answer;
use super::super::cluster_parts::ClusterParts;
use super::super::scaling::{Question, ScalingError, Subject};

/// Question with the pods that its answer is about.
pub(super) struct Followed<'q> {
    question: &'q Question<'q>,
    subject: Subject<'q>,
    /// Pods that the answer is about, with their claims; none if it is about all.
    pods: BTreeMap<Place, BTreeSet<ClaimKey>>,
    /// Their claims, each with each of its pods.
    claims: BTreeSet<(ClaimKey, Place)>,
    is_due: bool,
}

impl<'q> Followed<'q> {
    /// Begins with an answer to make.
    pub(super) fn new(question: &'q Question<'q>, view: &ClusterView) -> Self {
        let (pods, claims) = (BTreeMap::new(), BTreeSet::new());
        let mut followed = Self { question, subject: question.subject(), pods, claims, is_due: true };
        followed.list(view);
        followed
    }

    /// Returns true if the answer has to be made, for the first time or anew.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Notes what a change has touched.
    pub(super) fn take(&mut self, touched: &Touched, view: &ClusterView) {
        let is_due = match (touched, self.subject) {
            (Touched::Nothing, _) => false,
            (_, Subject::All) => true,
            (Touched::Pods, _) => {
                self.list(view);
                true
            }
            (Touched::Pod(place), _) => self.update(place, view.pod_at(place)),
            (Touched::Claim(claim, nodes), subject) => {
                self.has_claim(claim) || (subject == Subject::Pending && *nodes == Nodes::All)
            }
            (Touched::Nodes(Nodes::These(nodes)), _) => self.question.has_template_of(nodes),
            _ => true,
        };
        self.is_due |= is_due;
    }

    /// Answers the question.
    ///
    /// # Complexity
    /// Linear in the pods that the answer is about, whatever the number of others; that of the question besides.
    pub(super) fn answer(&mut self, view: &mut ClusterView, now: Timestamp) -> Result<Answer, ScalingError> {
        self.is_due = false;
        let is_about_all = self.subject == Subject::All;
        let cluster = ClusterParts {
            nodes: if is_about_all { view.nodes.values().collect() } else { Vec::new() },
            pods: if is_about_all {
                view.pods.pods().map(|(pod, _)| &**pod).collect()
            } else {
                self.pods
                    .keys()
                    .filter_map(|(namespace, name)| view.pods.pod(namespace, name))
                    .map(|pod| &**pod)
                    .collect()
            },
            pod_groups: &[],
            budgets: view.budgets.values().collect(),
            inventory: &mut view.inventory,
            classes: &view.classes,
            claims: &view.claims,
        };
        self.question.answer(cluster, now)
    }

    /// Looks for the pods of the answer among all.
    fn list(&mut self, view: &ClusterView) {
        self.pods.clear();
        self.claims.clear();
        for pod in view.all_pods() {
            self.update(&place(&pod.metadata), Some(pod));
        }
    }

    /// Takes a pod as it is now; `None` if it is gone. Returns true if the answer is about it, or was.
    fn update(&mut self, place: &Place, pod: Option<&Pod>) -> bool {
        let before = self.pods.remove(place);
        for claim in before.iter().flatten() {
            self.claims.remove(&(claim.clone(), place.clone()));
        }
        let after = pod.filter(|pod| self.is_about(place, pod)).map(claims_of);
        self.claims.extend(after.iter().flatten().map(|claim| (claim.clone(), place.clone())));
        let is_or_was = before.is_some() || after.is_some();
        self.pods.extend(after.map(|claims| (place.clone(), claims)));
        is_or_was
    }

    fn has_claim(&self, claim: &ClaimKey) -> bool {
        let first = self.claims.range((claim.clone(), Place::default())..).next();
        first.is_some_and(|(found, _)| found == claim)
    }

    fn is_about(&self, (namespace, name): &Place, pod: &Pod) -> bool {
        match self.subject {
            Subject::All => false,
            Subject::Pending => is_pending(pod, None),
            Subject::Named(names) => names.iter().any(|known| *known == format!("{namespace}/{name}")),
        }
    }
}
