//! Layout of the story's text.

use std::fmt::{Display, Write};

use anstyle::{AnsiColor, Style};

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const DECISION: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
/// Indent of the text beside a label such as "input".
const INDENT: &str = "             ";

/// Text that grows step by step.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    steps: usize,
}

impl Page {
    /// Begins a step.
    pub(super) fn step(&mut self, title: &str) {
        self.steps += 1;
        let gap = if self.steps == 1 { "" } else { "\n" };
        let number = self.steps;
        self.put(format_args!("{gap}{HEADING}{number}. {title}{HEADING:#}\n"));
    }

    /// Appends an input.
    pub(super) fn input(&mut self, text: impl Display) {
        self.line("input", Style::new(), text);
    }

    /// Appends a decision.
    pub(super) fn decision(&mut self, text: impl Display) {
        self.line("decision", DECISION, text);
    }

    /// Appends a reason.
    pub(super) fn reason(&mut self, text: impl Display) {
        self.line("reason", QUIET, text);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, word: &str, style: Style, text: impl Display) {
        let text = text.to_string();
        for (index, line) in text.lines().enumerate() {
            let margin = if index == 0 { format!("   {word:<10}") } else { INDENT.to_owned() };
            self.put(format_args!("{margin}{style}{line}{style:#}\n"));
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(text);
    }
}
