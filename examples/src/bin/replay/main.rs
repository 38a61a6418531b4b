//! Answers JSON documents, one per line: `replay < in.jsonl > out.jsonl`.
//!
//! A line that can't be answered gives an error line, and the run continues. Blank lines are skipped.

mod alloc;
mod answer;
mod attrs;
mod driver;
mod kubelet;
mod nnn;
mod objects;
mod operation;
mod poolstatus;
mod readiness;
mod refusal;
mod selector;
mod settings;
mod stopwatch;
mod validate;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::process::ExitCode;

use clap::Parser;

use answer::answer;

/// Allocator that is faster than that of most systems: answers are many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Answers JSON documents from stdin, one per line, on stdout
#[derive(Debug, Parser)]
#[command(name = "replay", after_help = "docs/replay.md says what can be asked.")]
struct Args {}

fn main() -> ExitCode {
    let Args {} = Args::parse();
    match replay(BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock())) {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe is no error: there is no reader to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("replay: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers each line. Whoever waits for an answer gets it: output is kept back only while the next line is at hand.
fn replay(mut input: BufReader<impl Read>, mut output: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if !line.trim_ascii().is_empty() {
            writeln!(output, "{}", answer(&line))?;
        }
        line.clear();
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    output.flush()
}
