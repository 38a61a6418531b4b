//! Explanations of verdicts that are asked for after the decision.

use k8s_openapi::api::core::v1::Node;

use super::attempt::Attempt;
use super::verdict::Verdict;
use crate::explain::Detail;
use crate::search::allocate_error::AllocateError;
use crate::search::budget::Budget;

/// Reason why a verdict can't be explained.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// Devices, claims or slices have changed, and the verdict is another one by now.
    #[error("the cluster has changed since the verdict")]
    MovedOn,
    /// The attempt can't be made.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
}

impl Verdict {
    /// Explains the verdict, for a caller that decides about all nodes first and asks for the reasons of some. `attempt` is one for
    /// the same claims. Returns the same verdict with its reasons, of which claims that are allocated have none.
    ///
    /// # Errors
    /// The attempt comes to another outcome by now, or fails.
    ///
    /// # Complexity
    /// That of [`Attempt::allocate`] with an explanation, which nodes in one state share.
    ///
    /// ```
    /// use dra_alloc::explain::Detail;
    /// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, ExplainError, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::Node;
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
    /// use serde_json::{from_value, json};
    ///
    /// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "a"}, "spec": {
    ///     "driver": "gpu.example.com", "nodeName": "a", "devices": [{"name": "gpu-0"}],
    ///     "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
    /// }}))?;
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {"requests": [
    ///     {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
    /// ]}}}))?;
    /// let node: Node = from_value(json!({"metadata": {"name": "a"}}))?;
    /// let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    ///
    /// let mut state = AllocatedState::default();
    /// state.hold(&DeviceId::new("gpu.example.com", "a", "gpu-0"));
    /// let (attempt, budget) = (allocator.attempt(&state, [&claim]), Budget::default());
    /// let verdict = attempt.allocate(&node, budget)?;
    /// let explanation = verdict.explain(&attempt, &node, Detail::Summary, budget)?.explanation;
    /// assert_eq!(explanation.unwrap().headline().unwrap(), "no free device of class gpu");
    ///
    /// let free = AllocatedState::default();
    /// let attempt = allocator.attempt(&free, [&claim]);
    /// assert_eq!(verdict.explain(&attempt, &node, Detail::Summary, budget), Err(ExplainError::MovedOn));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(
        &self,
        attempt: &Attempt<'_>,
        node: &Node,
        detail: Detail,
        budget: Budget<'_>,
    ) -> Result<Self, ExplainError> {
        let explained = attempt.explained(node, detail, budget)?;
        if explained.outcome == self.outcome { Ok(explained) } else { Err(ExplainError::MovedOn) }
    }
}
