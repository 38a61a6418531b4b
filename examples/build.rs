//! Generates the gRPC types of the example `kubelet`. The compiler is written in Rust: no `protoc` is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let types = protox::compile(["proto/dra.proto"], ["proto"])?;
    tonic_prost_build::configure().btree_map(".").compile_fds(types)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
