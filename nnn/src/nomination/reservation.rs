//! Node resources that nominations reserve: a pod must fit a node both with and without the pods nominated there.
//!
//! Only nominations of at least the pod's priority count, and never its own. The pass without them matters to filters
//! such as pod affinity, which more pods can satisfy.

use dra_attrs::Resources;

use super::nominator::Nomination;
use crate::pod::PodSnapshot;

/// Result of filtering one node for a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a filter has these three answers")]
pub enum NodeFit<R> {
    /// The pod fits.
    #[default]
    Fits,
    /// The pod does not fit the node, for the given reason.
    Rejected(R),
    /// The filter failed with the given error.
    Failed(R),
}

impl<R> NodeFit<R> {
    /// Returns true if the pod fits.
    #[must_use]
    pub const fn fits(&self) -> bool {
        matches!(self, Self::Fits)
    }
}

/// Returns the nominations of other pods that count against a pod: those of at least its priority.
fn counted_nominations<'a>(
    pod: &'a PodSnapshot,
    nominations: impl IntoIterator<Item = &'a Nomination>,
) -> impl Iterator<Item = &'a Nomination> {
    nominations.into_iter().filter(|other| other.priority >= pod.priority && other.pod.uid != pod.key.uid)
}

impl PodSnapshot {
    /// Runs a filter on a node twice, as kube-scheduler's `RunFilterPluginsWithNominatedPods`: with the pods that are
    /// nominated to the node, then without.
    ///
    /// `fit` gets the nominated pods to add to the node, and none the second time. It is called once if no nomination
    /// counts or if the first answer is not [`NodeFit::Fits`]. If adding the pods fails, `fit` returns [`NodeFit::Failed`].
    ///
    /// # Complexity
    /// Linear in the nominations of the node, besides the calls.
    ///
    /// ```
    /// use nnn::{NodeFit, Nomination, PodSnapshot};
    /// let promised = PodSnapshot::pending("default", "first").with_priority(5);
    /// let nominations = [Nomination::new(&promised, "node-1")];
    /// // There is room for one pod.
    /// let fit = |running: &[&Nomination]| if running.is_empty() { NodeFit::Fits } else { NodeFit::Rejected("full") };
    /// let pod = |priority| PodSnapshot::pending("default", "second").with_priority(priority);
    /// assert_eq!(pod(5).filter_with_nominated_pods(&nominations, fit), NodeFit::Rejected("full"));
    /// assert_eq!(pod(6).filter_with_nominated_pods(&nominations, fit), NodeFit::Fits);
    /// ```
    pub fn filter_with_nominated_pods<'a, R>(
        &'a self,
        nominations: impl IntoIterator<Item = &'a Nomination>,
        mut fit: impl FnMut(&[&'a Nomination]) -> NodeFit<R>,
    ) -> NodeFit<R> {
        let counted: Vec<&Nomination> = counted_nominations(self, nominations).collect();
        if counted.is_empty() {
            return fit(&[]);
        }
        match fit(&counted) {
            NodeFit::Fits => fit(&[]),
            no => no,
        }
    }

    /// Returns true if the pod's requests fit with and without the nominated pods, looking only at resources
    /// ([`Self::filter_with_nominated_pods`] runs any filter).
    ///
    /// ```
    /// use dra_attrs::{Quantity, QuantityFormat};
    /// use dra_attrs::Resources;
    /// use nnn::{Nomination, PodSnapshot};
    /// let cpu = |units| Resources::new([("cpu", Quantity::from_units(units, QuantityFormat::DecimalSi))]);
    /// let promised = Nomination::new(&PodSnapshot::pending("default", "a").with_requests(cpu(3)), "node-1");
    /// let pod = PodSnapshot::pending("default", "b").with_requests(cpu(2));
    /// assert!(!pod.fits_unreserved_resources(&cpu(4), [&promised]));
    /// assert!(pod.with_priority(1).fits_unreserved_resources(&cpu(4), [&promised]));
    /// ```
    pub fn fits_unreserved_resources<'a>(
        &'a self,
        free: &Resources,
        nominations: impl IntoIterator<Item = &'a Nomination>,
    ) -> bool {
        self.requests.fits_into(free) && self.requests.fits_into(&unreserved_resources(self, free, nominations))
    }
}

/// Returns the resources in `free` that remain for a pod after the nominations. A resource may be negative.
///
/// `free` is the allocatable of the node less the requests of bound and assumed pods.
fn unreserved_resources<'a>(
    pod: &'a PodSnapshot,
    free: &Resources,
    nominations: impl IntoIterator<Item = &'a Nomination>,
) -> Resources {
    let mut promised = Resources::default();
    counted_nominations(pod, nominations).for_each(|other| promised.add(&other.requests));
    free.minus(&promised)
}

#[cfg(test)]
mod tests {
    use dra_attrs::{Quantity, QuantityFormat, Resources};

    use super::{Nomination, unreserved_resources};
    use crate::pod::PodSnapshot;

    fn cpu(units: i64) -> Resources {
        Resources::new([("cpu", Quantity::from_units(units, QuantityFormat::DecimalSi))])
    }

    fn pod(name: &str, priority: i32, units: i64) -> PodSnapshot {
        PodSnapshot::pending("default", name).with_priority(priority).with_requests(cpu(units))
    }

    #[test]
    fn what_is_left_may_be_below_zero() {
        let promised = |name: &str, priority, units| Nomination::new(&pod(name, priority, units), "n");
        let asking = PodSnapshot::pending("default", "p");
        let left = unreserved_resources(&asking, &cpu(2), &[promised("a", 0, 2), promised("b", 9, 3)]);
        assert_eq!(left.quantity("cpu").to_string(), "-3");
        // A pod that asks for nothing fits all the same, as in kube-scheduler.
        assert!(asking.fits_unreserved_resources(&cpu(2), &[promised("a", 0, 9)]));
    }
}
