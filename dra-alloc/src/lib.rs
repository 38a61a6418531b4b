//! What Kubernetes decides about devices: which devices a claim gets, what a driver may publish, and which node
//! operations the kubelet performs or skips (KEP-5945, and the allocation side of KEP-6072).
//!
//! The crate has no public items yet; `docs/requirements.tsv` says which statements of the KEPs are open.
