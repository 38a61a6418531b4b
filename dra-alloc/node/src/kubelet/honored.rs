//! The operations that a kubelet skips, given those that the devices of a driver declare.

use dra_attrs::Component;
use dra_device::skip::{SkipSet, WireForm};

/// Returns the operations that a kubelet skips, given those that all devices of a driver skip. A kubelet that reads
/// `skipNodeOperations` as a bool (KEP) skips both operations or none.
pub(super) fn honored(kubelet: Component, skips: SkipSet) -> SkipSet {
    match WireForm::from_profile(kubelet.profile()) {
        WireForm::List => skips,
        WireForm::Bool if skips.prepare && skips.unprepare => SkipSet::EVERYTHING,
        WireForm::Bool => SkipSet::NONE,
    }
}
