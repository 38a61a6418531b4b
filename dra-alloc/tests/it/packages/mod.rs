//! Tests of what several packages do together: API server, scheduler and kubelet.

mod kubelet_components;
mod kubelet_rollback;
#[path = "../../../node/tests/it/kubelet/world.rs"]
#[allow(dead_code, reason = "shared with the tests of the kubelet alone")]
mod kubelet_world;
mod selector_lists;
mod validate_lists;
mod validate_properties;
#[path = "../../../validate/tests/it/world.rs"]
#[allow(dead_code, reason = "shared with the tests of validation alone")]
mod validate_world;
