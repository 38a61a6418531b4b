//! Parts that two or more of the example programs share, or that a fuzz target calls. What belongs to one program alone
//! stands beside its `main.rs`.

pub mod candidates;
pub mod claim_store;
pub mod cluster_args;
pub mod eviction_preview;
pub mod feature_gates;
pub mod held_twice;
pub mod instant;
pub mod lint;
#[cfg(feature = "live")]
pub mod live;
pub mod machine;
pub mod manifest;
pub mod movable;
pub mod nominate;
pub mod objective_file;
pub mod objects;
pub mod output;
pub mod placing;
pub mod plan;
pub mod pool_question;
pub mod pool_table;
pub mod preempt;
pub mod quoted;
pub mod random;
pub mod release_args;
pub mod room;
pub mod simulation;
pub mod sysfs;
pub mod table;
pub mod workload;

/// Tests the examples of a page of the project as doctests.
#[cfg(doctest)]
macro_rules! pages {
    ($($name:ident: $path:literal)*) => {
        $(#[doc = include_str!(concat!("../../", $path))] pub struct $name;)*
    };
}

#[cfg(doctest)]
pages! {
    Readme: "README.md"
    Embedding: "docs/embedding.md"
    ForDriverAuthors: "docs/for-driver-authors.md"
    ForSchedulerAuthors: "docs/for-scheduler-authors.md"
    Versions: "docs/versions.md"
    DraAttrs: "dra-attrs/README.md"
    DraAlloc: "dra-alloc/README.md"
    DraDevice: "dra-alloc/device/README.md"
    DraNode: "dra-alloc/node/README.md"
    DraSelector: "dra-alloc/selector/README.md"
    DraValidate: "dra-alloc/validate/README.md"
    Nnn: "nnn/README.md"
    PoolStatus: "poolstatus/README.md"
    Readiness: "readiness/README.md"
}
