//! Work on one key, call by call.

use super::call::ControllerResponse;
use super::clean_sync::CleanSync;
use super::controller::ClaimController;
use super::owner_sync::OwnerSync;
use super::queue::{QueueKey, QueueKind};
use super::step::SyncStep;

/// Work on one key. It is of the state of the controller at its begin.
#[derive(Clone, Debug)]
pub struct ControllerSync {
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Owner(OwnerSync),
    Claim(CleanSync),
    Nothing,
}

impl ClaimController {
    /// Looks at the object of a key. An object that is not known, or a pod or group that is being deleted, gives nothing to
    /// do.
    ///
    /// # Complexity
    /// Linear in the entries of the object, its consumers and the sizes of templates, times the logarithm of the number of
    /// objects. A claim of which n consumers are unknown costs n for each of them.
    #[must_use]
    pub fn sync(&self, key: &QueueKey) -> ControllerSync {
        let object = key.object();
        let work = match key.kind {
            QueueKind::Pod => {
                let pod = self.pods.get(&object).filter(|pod| pod.metadata.deletion_timestamp.is_none());
                pod.map(|pod| Work::Owner(OwnerSync::of_pod(self, key, pod)))
            }
            QueueKind::PodGroup => {
                let group = self.groups.get(&object).filter(|group| group.metadata.deletion_timestamp.is_none());
                let group = group.filter(|_| self.has_groups());
                group.map(|group| Work::Owner(OwnerSync::of_group(self, key, group)))
            }
            QueueKind::Claim => self.claims.get(&object).map(|claim| Work::Claim(CleanSync::new(self, claim))),
        };
        ControllerSync { work: work.unwrap_or(Work::Nothing) }
    }
}

impl ControllerSync {
    /// Returns the next step: the same until a call is answered.
    #[must_use]
    pub fn next_step(&mut self) -> SyncStep {
        match &mut self.work {
            Work::Owner(sync) => sync.next_step(),
            Work::Claim(sync) => sync.next_step(),
            Work::Nothing => SyncStep::Done,
        }
    }

    /// Takes the answer to the last call. Without a call it is ignored.
    pub fn answer(&mut self, answer: ControllerResponse) {
        match &mut self.work {
            Work::Owner(sync) => sync.answer(answer),
            Work::Claim(sync) => sync.answer(answer),
            Work::Nothing => {}
        }
    }
}
