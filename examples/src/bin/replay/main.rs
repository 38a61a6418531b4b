//! Answers JSON documents, one per line: `replay < in.jsonl > out.jsonl`.
//!
//! A line that can't be answered gives an error line, and the run continues. Blank lines are skipped.

mod alloc;
mod answer;
mod attrs;
mod declared_features;
mod driver;
mod kubelet;
mod nnn;
mod objects;
mod operation;
mod poolstatus;
mod readiness;
mod refusal;
mod scheduling;
mod selector;
mod settings;
mod skip;
mod steps;
mod stopwatch;
mod validate;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::process::ExitCode;

use clap::Parser;
use examples::output::{Trouble, program};

use answer::{answer, refuse_line};

/// Largest number of bytes of a line.
const MAX_LINE_LEN: u64 = 256 * 1024 * 1024;

/// Allocator that is faster than that of most systems: answers are many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Answers JSON documents from stdin, one per line, on stdout
#[derive(Debug, Parser)]
#[command(name = "replay", version, after_help = "docs/replay.md says what can be asked.")]
struct Args {}

#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error("stdin: {0}")]
    Read(io::Error),
    #[error("stdout: {0}")]
    Write(#[from] io::Error),
}

impl Trouble for ReplayError {}

fn main() -> ExitCode {
    program(|Args {}| {
        replay(BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()))?;
        Ok::<_, ReplayError>(ExitCode::SUCCESS)
    })
}

/// Answers each line. Whoever waits for an answer gets it: output is kept back only while the next line is at hand.
fn replay(mut input: BufReader<impl Read>, mut output: impl Write) -> Result<(), ReplayError> {
    let mut line = Vec::new();
    while read_line(&mut input, &mut line).map_err(ReplayError::Read)? {
        if is_too_long(&line) {
            refuse_line(&format!("a line of more than {MAX_LINE_LEN} bytes"), &mut output)?;
        } else if !line.trim_ascii().is_empty() {
            answer(&line, &mut output)?;
        }
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(output.flush()?)
}

/// Reads a line; one that is too long only as far as that is known. Returns false at the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = input.by_ref().take(MAX_LINE_LEN.saturating_add(1)).read_until(b'\n', line)?;
    if is_too_long(line) && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn is_too_long(line: &[u8]) -> bool {
    u64::try_from(line.len()).is_ok_and(|len| len > MAX_LINE_LEN)
}
