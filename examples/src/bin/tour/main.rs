//! Tour of the crates: the story of a pod with devices, from the driver that publishes them to the status of the pools,
//! and a node that is held back until it is ready. `--machines` shows NUMA attributes of real machines instead. Plain
//! text in a pipe, coloured on a terminal.

mod allocate;
mod availability;
mod cluster;
mod error;
mod hold_back;
mod machines;
mod nominate;
mod page;
mod prepare;
mod publish;
mod slow_volume;
mod story;
mod validate;

use std::process::ExitCode;

use clap::Parser;
use examples::output::{Trouble, program, put_styled};

use error::TourError;
use story::story;

/// Shows the crates of dra-sdk at work, in the story of a pod with devices
#[derive(Debug, Parser)]
#[command(name = "tour", version)]
struct Args {
    /// Show the NUMA attributes that devices of real machines publish, and the pairs that match
    #[arg(long)]
    machines: bool,
}

impl Trouble for TourError {}

fn main() -> ExitCode {
    program(|args: &Args| {
        put_styled(&if args.machines { machines::tables()? } else { story()? })?;
        Ok::<_, TourError>(ExitCode::SUCCESS)
    })
}
