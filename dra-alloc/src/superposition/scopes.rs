//! Scopes of slices and devices that not all kinds of nodes see.
//!
//! A device counts for a box of labels only if each node of the box sees it. For the others the slice is replaced by a copy in which
//! the device is for no node: a slice that is left out would make its pool incomplete.

use std::sync::Arc;

use dra_attrs::node_selector_matches;
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::corners::Corners;
use crate::cluster::scope::selector_of_node;

/// Node selector of a slice or one of its devices, with the corners that match it.
struct Scope {
    /// Position of the device; `None` for the slice.
    device: Option<usize>,
    /// For each corner if it matches; empty if the selector can't be read, which is an error for every node.
    matches: Vec<bool>,
}

/// Slices that have node selectors, with these.
pub(super) struct Scopes {
    slices: Vec<(Arc<ResourceSlice>, Vec<Scope>)>,
}

impl Scopes {
    /// Judges the node selectors of slices at all corners.
    pub(super) fn new(slices: &[Arc<ResourceSlice>], corners: &Corners) -> Self {
        let scope = |(device, selector): (Option<usize>, &NodeSelector)| {
            let matches = corners.nodes().iter().map(|node| node_selector_matches(selector, node));
            Scope { device, matches: matches.collect::<Result<_, _>>().unwrap_or_default() }
        };
        let judged = slices.iter().map(|slice| (Arc::clone(slice), selectors(slice).map(scope).collect()));
        Self { slices: judged.collect() }
    }

    /// Returns copies of the slices that only some of the corners see, for none of them; and for each scope if all corners see it.
    pub(super) fn hidden(&self, corners: &[usize]) -> (Vec<Arc<ResourceSlice>>, Vec<bool>) {
        let (mut hidden, mut seen) = (Vec::new(), Vec::new());
        for (slice, scopes) in &self.slices {
            let mut copy = None;
            for scope in scopes {
                let count = corners.iter().filter(|corner| scope.matches.get(**corner) == Some(&true)).count();
                seen.push(count == corners.len());
                if count > 0 && count < corners.len() {
                    hide(copy.get_or_insert_with(|| ResourceSlice::clone(slice)), scope.device);
                }
            }
            hidden.extend(copy.map(Arc::new));
        }
        (hidden, seen)
    }
}

/// Returns the node selectors of a slice and its devices, with the positions of the devices.
pub(super) fn selectors(slice: &ResourceSlice) -> impl Iterator<Item = (Option<usize>, &NodeSelector)> {
    let of_slice = slice.spec.node_selector.iter().map(|selector| (None, selector));
    let devices = slice.spec.devices.iter().flatten().enumerate();
    of_slice.chain(devices.filter_map(|(position, device)| Some((Some(position), device.node_selector.as_ref()?))))
}

/// Gives a slice or one of its devices to no node.
fn hide(slice: &mut ResourceSlice, device: Option<usize>) {
    // No node has an empty name.
    let nowhere = Some(selector_of_node(""));
    match device {
        None => slice.spec.node_selector = nowhere,
        Some(position) => {
            if let Some(device) = slice.spec.devices.iter_mut().flatten().nth(position) {
                device.node_selector = nowhere;
            }
        }
    }
}
