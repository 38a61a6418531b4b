//! Whether a node is ready for work, by the gates that its agents report on (KEP-5233).
//!
//! The crate has no public items yet; `docs/requirements.tsv` says which statements of the KEP are open.

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "readiness needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );
}
