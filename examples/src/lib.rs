//! Shared parts of the example programs.
pub mod machine;
pub mod replay;
pub mod sysfs;
