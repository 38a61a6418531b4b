//! A walk through the family: the story of a pod with devices, from the driver that publishes them to the pool that has
//! fewer left, and a node that is held back until it is ready. `--machines` looks at NUMA on machines of real shape
//! instead. Plain in a pipe, coloured on a terminal.

use std::process::ExitCode;

use anstream::{eprint, print};
use clap::Parser;
use examples::tour::{machines, story};

/// A walk through dra-sdk
#[derive(Debug, Parser)]
#[command(name = "tour")]
struct Args {
    /// What devices publish about NUMA, and what matches, on machines of real shape
    #[arg(long)]
    machines: bool,
}

fn main() -> ExitCode {
    if Args::parse().machines {
        return machines::show();
    }
    match story() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprint!("tour: {error}\n");
            ExitCode::FAILURE
        }
    }
}
