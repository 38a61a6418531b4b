//! When a pod's `nominatedNodeName` is set, overwritten and cleared, and what others may conclude from it (KEP-5278).
//!
//! The crate has no public items yet; `docs/requirements.tsv` says which statements of the KEP are open.

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "nnn needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );
}
