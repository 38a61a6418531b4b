//! Generates the gRPC types of the program `kubelet`, for the feature `grpc`. The compiler is written in Rust: no `protoc`
//! is needed.

#[cfg(feature = "grpc")]
use std::error::Error;

#[cfg(feature = "grpc")]
fn main() -> Result<(), Box<dyn Error>> {
    let types = protox::compile(["proto/dra.proto"], ["proto"])?;
    tonic_prost_build::configure().btree_map(".").compile_fds(types)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}

#[cfg(not(feature = "grpc"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
