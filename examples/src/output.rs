//! Output of programs: answers to stdout, everything else to stderr; exit status 0, 1 or 2 as [`program`] says.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use dra_live::say::is_obeyed;
pub use dra_live::say::{escaped, one_line, say};
use serde::Serialize;
use serde_json::Value;

/// Exit status of a program whose command line is wrong.
const USAGE: u8 = 2;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each program has a text for each")]
pub enum Format {
    /// Tables and lines for people
    Table,
    /// Objects in JSON: one as it is, several as a list
    Json,
    /// Objects as YAML documents
    Yaml,
}

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

/// Error that ends a program.
pub trait Trouble: fmt::Display {
    /// Returns true if the command line is wrong, and not what it names.
    fn is_usage(&self) -> bool {
        false
    }
}

/// Runs a program to its exit status: 0 if it has answered, 1 if there was trouble, 2 if the command line is wrong. An
/// error is printed to stderr.
pub fn program<A: Parser, E: Trouble>(run: impl FnOnce(&A) -> Result<ExitCode, E>) -> ExitCode {
    let name = A::command().get_name().to_owned();
    let failed = |error: &dyn fmt::Display| say(&format_args!("{name}: {error}"));
    match A::try_parse() {
        Ok(args) => run(&args).unwrap_or_else(|error| {
            failed(&error);
            if error.is_usage() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }),
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            ExitCode::from(USAGE)
        }
        // Help, or the version.
        Err(error) => put_styled(&error.render().ansi().to_string()).map_or_else(
            |error| {
                failed(&error);
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
    }
}

/// Prints an answer to stdout, with control characters other than line feeds escaped.
///
/// # Errors
/// The error of the operating system, also for a closed pipe: the answer was not read.
pub fn put(text: &str) -> Result<(), OutputError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(escaped(text).as_bytes()).and_then(|()| stdout.flush()).map_err(OutputError::Write)
}

/// Prints an answer with styles, which only a terminal gets. What comes from objects has to be escaped before.
///
/// # Errors
/// As for [`put`].
pub fn put_styled(text: &str) -> Result<(), OutputError> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(OutputError::Write)
}

/// Returns an object as indented JSON, in which all control characters are escaped.
///
/// # Errors
/// The object can't be written as JSON.
pub fn as_json(object: &impl Serialize) -> Result<String, OutputError> {
    Ok(escaped_json(&serde_json::to_string_pretty(object)?) + "\n")
}

fn escaped_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // Only texts have such characters, and in them JSON writes them so.
        if is_obeyed(character) && character != '\n' {
            // Writing to a String can't fail.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

/// Form of the lines that a program prints while it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "values of a flag")]
pub enum LineForm {
    /// Sentences
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// Prints what has just happened to stdout, as one line.
///
/// # Errors
/// As for [`put`].
pub fn put_line(form: LineForm, line: &(impl fmt::Display + Serialize)) -> Result<(), OutputError> {
    match form {
        LineForm::Text => put(&format!("{line}\n")),
        LineForm::Json => put(&(escaped_json(&serde_json::to_string(line)?) + "\n")),
    }
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
