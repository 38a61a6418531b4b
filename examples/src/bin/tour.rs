//! tour
fn main() {}
