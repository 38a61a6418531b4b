//! Programs, run as a user runs them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Output of a run.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(program: &str, args: &[&str], stdin: &str) -> Self {
        Self::within(Path::new("."), program, args, stdin)
    }

    /// Runs a program in a directory.
    pub(crate) fn within(folder: &Path, program: &str, args: &[&str], stdin: &str) -> Self {
        let mut command = Command::new(program);
        command.current_dir(folder).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program need not read all of its input.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Returns the run after checking that it succeeded and wrote nothing to stderr.
    pub(crate) fn clean(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
