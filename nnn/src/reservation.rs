//! What nominations reserve: a node must fit a pod both with and without the pods that are promised room there.
//!
//! Only nominations of at least the pod's priority count, and never its own. The pass without them matters to filters
//! for which more pods can be better, as affinity to other pods is.

use crate::amount::Resources;
use crate::nominator::Nomination;
use crate::pod::PodView;

/// What a fit function says about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a filter has these three answers")]
pub enum Fit<R> {
    /// The pod fits.
    Fits,
    /// It does not, and why.
    Rejected(R),
    /// The question could not be answered, and why.
    Failed(R),
}

impl<R> Fit<R> {
    /// The pod fits.
    #[must_use]
    pub const fn fits(&self) -> bool {
        matches!(self, Self::Fits)
    }
}

/// The nominations that count when a node is judged for a pod, in their order.
pub fn counted<'a>(
    pod: &'a PodView,
    nominations: impl IntoIterator<Item = &'a Nomination>,
) -> impl Iterator<Item = &'a Nomination> {
    nominations.into_iter().filter(|other| other.priority >= pod.priority && other.pod.uid != pod.key.uid)
}

/// Judges a node for a pod: first with the nominations that count as if their pods ran there, then without.
///
/// `fit` gets the nominated pods to add to the node; the second time none. It is called once if no nomination counts, or
/// if the first answer is not [`Fit::Fits`]. A failure to add the pods is a [`Fit::Failed`] of the first call.
///
/// Linear in the nominations of the node, besides the calls.
///
/// ```
/// use nnn::nominator::Nomination;
/// use nnn::pod::PodView;
/// use nnn::reservation::{Fit, two_pass};
/// let promised = PodView::pending("default", "first").with_priority(5);
/// let nominations = [Nomination::new(&promised, "node-1")];
/// // There is room for one pod.
/// let fit = |running: &[&Nomination]| if running.is_empty() { Fit::Fits } else { Fit::Rejected("full") };
/// let pod = |priority| PodView::pending("default", "second").with_priority(priority);
/// assert_eq!(two_pass(&pod(5), &nominations, fit), Fit::Rejected("full"));
/// assert_eq!(two_pass(&pod(6), &nominations, fit), Fit::Fits);
/// ```
pub fn two_pass<'a, R>(
    pod: &'a PodView,
    nominations: impl IntoIterator<Item = &'a Nomination>,
    mut fit: impl FnMut(&[&'a Nomination]) -> Fit<R>,
) -> Fit<R> {
    let counted: Vec<&Nomination> = counted(pod, nominations).collect();
    if counted.is_empty() {
        return fit(&[]);
    }
    match fit(&counted) {
        Fit::Fits => fit(&[]),
        no => no,
    }
}

/// What is left of `free` for a pod once the nominations that count are served. May be below zero.
///
/// `free` is what the node has to allocate less what bound and assumed pods request.
pub fn left_for<'a>(
    pod: &'a PodView,
    free: &Resources,
    nominations: impl IntoIterator<Item = &'a Nomination>,
) -> Resources {
    let mut promised = Resources::default();
    counted(pod, nominations).for_each(|other| promised.add(&other.requests));
    free.minus(&promised)
}

/// The two passes in closed form, where only resources count: the pod's requests fit into what is left.
///
/// ```
/// use nnn::amount::{Amount, Resources};
/// use nnn::nominator::Nomination;
/// use nnn::pod::PodView;
/// use nnn::reservation::fits_resources;
/// let cpu = |units| Resources::new([("cpu", Amount::from_units(units))]);
/// let promised = Nomination::new(&PodView::pending("default", "a").with_requests(cpu(3)), "node-1");
/// let pod = PodView::pending("default", "b").with_requests(cpu(2));
/// assert!(!fits_resources(&pod, &cpu(4), [&promised]));
/// assert!(fits_resources(&pod.with_priority(1), &cpu(4), [&promised]));
/// ```
pub fn fits_resources<'a>(
    pod: &'a PodView,
    free: &Resources,
    nominations: impl IntoIterator<Item = &'a Nomination>,
) -> bool {
    pod.requests.fits_into(free) && pod.requests.fits_into(&left_for(pod, free, nominations))
}
