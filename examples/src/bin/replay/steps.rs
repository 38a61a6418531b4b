//! Steps of an answer, written one by one: together they can be far larger than what asked for them.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::stopwatch::Stopwatch;

/// Parsed operation with steps, which writes each step as it is made. All of its input is known to be right.
pub(crate) type StepOperation = Box<dyn Fn(&mut Stopwatch, &mut StepWriter<'_>) -> io::Result<()>>;

/// Steps whose state is part of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum States {
    /// Every step.
    #[default]
    Each,
    /// The last step only.
    Last,
}

impl States {
    /// Returns true if the answer has the state after the step at `index` of `count`.
    pub(crate) const fn has(self, index: usize, count: usize) -> bool {
        matches!(self, Self::Each) || index.saturating_add(1) == count
    }
}

/// Writer of the steps of one answer; without an output, steps are not written.
pub(crate) struct StepWriter<'o> {
    output: Option<&'o mut dyn Write>,
    is_first: bool,
}

impl<'o> StepWriter<'o> {
    /// Returns a writer for a repetition whose answer does not count.
    pub(crate) const fn none() -> Self {
        Self { output: None, is_first: true }
    }

    pub(crate) const fn new(output: &'o mut dyn Write) -> Self {
        Self { output: Some(output), is_first: true }
    }

    /// Returns true if steps are written.
    pub(crate) const fn is_asked(&self) -> bool {
        self.output.is_some()
    }

    /// Writes a step.
    pub(crate) fn write(&mut self, step: &impl Serialize) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        if !std::mem::take(&mut self.is_first) {
            output.write_all(b",")?;
        }
        Ok(serde_json::to_writer(output, step)?)
    }
}
