//! Stand-in for an API server, to try the programs of this folder without a cluster: the package `stand-in` as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    stand_in::run()
}
