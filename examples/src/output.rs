//! Output of programs: answers to stdout, everything else to stderr.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

/// Reason that an answer was not printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// An object can't be written as YAML.
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::SerializeError),
    /// An object can't be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Writing to stdout failed.
    #[error("stdout: {0}")]
    Write(io::Error),
}

/// Prints an answer to stdout. A closed pipe is no error: there is no reader to tell.
///
/// # Errors
/// The error of the operating system.
pub fn put(text: &str) -> Result<(), OutputError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Write(error)),
        _ => Ok(()),
    }
}

/// Returns an object as indented JSON.
///
/// # Errors
/// The object can't be written as JSON.
pub fn as_json(object: &impl Serialize) -> Result<String, OutputError> {
    Ok(serde_json::to_string_pretty(object)? + "\n")
}

/// Returns objects as YAML, one document each.
///
/// # Errors
/// An object can't be written as YAML.
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

/// Writes a line to stderr. Ignores failures, which could not be reported anywhere else.
pub fn say(line: &impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Ends a program: returns its exit status, or prints the error to stderr and returns a failure.
pub fn finish(program: &str, outcome: Result<ExitCode, impl fmt::Display>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        say(&format_args!("{program}: {error}"));
        ExitCode::FAILURE
    })
}
