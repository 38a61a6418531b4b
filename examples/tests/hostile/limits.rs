//! Runs of programs with limits of memory and processor time, which the system holds.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// Limits of a run.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Address space, in MiB.
    pub(crate) memory: u32,
    /// Processor time, in seconds.
    pub(crate) seconds: u32,
}

/// Limits of any input of 100 KB. The programs of a test are not optimized, and some allocators take address space in
/// advance.
pub(crate) const USUAL: Limits = Limits { memory: 1280, seconds: 20 };

/// Output of a run that ended by itself.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program in a folder, with a file as stdin. An error says how the run ended when it did not end by itself.
pub(crate) fn run(
    folder: &Path,
    program: &str,
    args: &[&str],
    stdin: Option<&str>,
    limits: Limits,
) -> Result<Ended, String> {
    let limit = format!("ulimit -v {}; ulimit -t {}; exec \"$@\"", limits.memory * 1024, limits.seconds);
    let file = |name: &str| File::create(folder.join(name)).unwrap();
    let stdin = stdin.map_or_else(Stdio::null, |name| File::open(folder.join(name)).unwrap().into());
    let mut command = Command::new("bash");
    command.current_dir(folder).args(["-c", &limit, "bash", program]).args(args);
    command.stdin(stdin).stdout(file("stdout")).stderr(file("stderr"));
    let status = command.status().unwrap();
    let text = |name: &str| String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap()).into_owned();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    match status.code() {
        Some(code @ 0..=2) => Ok(Ended { code, stdout, stderr }),
        _ => Err(format!("{status}: {}", stderr.chars().take(500).collect::<String>())),
    }
}
