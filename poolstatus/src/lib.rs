//! How many devices of a resource pool are left, where, and why not more (KEP-5677).
//!
//! The crate has no public items yet; `docs/requirements.tsv` says which statements of the KEP are open.
