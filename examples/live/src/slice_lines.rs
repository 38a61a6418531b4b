//! Passes over slices, for people.

use dra_node::driver::SyncPlan;

/// Returns a line for each write and each remark of a pass over the stored slices of a pool.
///
/// ```
/// use dra_live::slice_lines::slice_lines;
/// use dra_node::driver::SyncPlan;
/// assert_eq!(slice_lines(&SyncPlan::default()), ["nothing to write"]);
/// ```
#[must_use]
pub fn slice_lines(plan: &SyncPlan) -> Vec<String> {
    let clashes = plan.clashes.iter().map(|name| format!("{name} is of the same pool, and not of this node"));
    let waiting = plan.terminating.iter().map(|name| format!("{name} is being deleted: nothing is written before"));
    let rest = (plan.writes.is_empty() && plan.terminating.is_empty()).then(|| "nothing to write".to_owned());
    plan.writes.iter().map(ToString::to_string).chain(clashes).chain(waiting).chain(rest).collect()
}
