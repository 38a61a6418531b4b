//! What programs print: answers to stdout, everything else to stderr.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

/// Why an answer was not printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// An object has no YAML.
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::SerializeError),
    /// An object has no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The system's answer.
    #[error("stdout: {0}")]
    Write(io::Error),
}

/// Prints an answer. If its reader has gone, there is nobody to tell, and that is no error.
///
/// # Errors
/// The system's answer.
pub fn put(text: &str) -> Result<(), OutputError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Write(error)),
        _ => Ok(()),
    }
}

/// An object as JSON that people read.
///
/// # Errors
/// It has none.
pub fn as_json(object: &impl Serialize) -> Result<String, OutputError> {
    Ok(serde_json::to_string_pretty(object)? + "\n")
}

/// Objects as YAML, one document each.
///
/// # Errors
/// One of them has none.
pub fn as_yaml(objects: &[Value]) -> Result<String, OutputError> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Writes a line to stderr. A failure is passed over: there is no other place to report it.
pub fn say(line: &impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// The end of a program: its exit status, or a line on stderr that says why there is none.
pub fn finish(program: &str, outcome: Result<ExitCode, impl fmt::Display>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        say(&format_args!("{program}: {error}"));
        ExitCode::FAILURE
    })
}
