//! Rules of the scheduler's plugin for claims and of the claim controller, as far as they differ between releases.

use super::behaviours::behaviours;

/// Decides what the scheduler's plugin for claims and the claim controller write.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct PluginRules {
    /// Node whose search for devices takes too long.
    pub filter_timeout: FilterTimeout,
    /// Owner of a claim that the scheduler or the claim controller makes.
    pub owners: MadeOwners,
    /// Texts of failed bindings.
    pub binding_texts: BindingTexts,
    /// Scores of nodes by prioritized lists.
    pub scores: ClaimScores,
    /// Requests for the extended resources of init containers.
    pub init_requests: InitRequests,
}

behaviours! {
    /// Node whose search for devices takes too long.
    FilterTimeout {
        /// The node is passed over.
        SkipNode,
        /// The attempt ends with an error.
        EndAttempt,
    }
    /// Owner of a claim that the scheduler or the claim controller makes.
    MadeOwners {
        /// The owner is the controller, and is kept until the claim is deleted (`blockOwnerDeletion`).
        Blocking,
        /// The owner is the controller.
        Controller,
    }
    /// Scores of nodes by prioritized lists (KEP-4816).
    ClaimScores {
        /// The plugin has no score.
        Never,
        /// Nodes have scores, whatever the gates.
        Always,
        /// Nodes have scores while the gate of prioritized lists is on.
        WithPrioritizedList,
    }
    /// Requests for the extended resources of init containers that end before others run.
    InitRequests {
        /// Each has one of its own, beside those of the other containers.
        Own,
        /// They use the devices of the later containers, and have one request for the rest.
        Shared,
    }
    /// Texts of bindings that fail, or take too long.
    BindingTexts {
        /// A failure begins with the claim; a time limit names none.
        Claim,
        /// Both begin with the devices and name the claim.
        Device,
    }
}
