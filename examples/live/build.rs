//! Generates the gRPC types between kubelet and drivers, for the feature `plugin`. The compiler is written in Rust: no `protoc`
//! is needed.

#[cfg(feature = "plugin")]
use std::error::Error;

#[cfg(feature = "plugin")]
fn main() -> Result<(), Box<dyn Error>> {
    let files = ["dra", "dra_v1beta1", "dra_health_v1", "dra_health_v1alpha1", "pluginregistration"]
        .map(|name| format!("proto/{name}.proto"));
    let types = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().btree_map(".").compile_fds(types)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}

#[cfg(not(feature = "plugin"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
