//! Replies of the program `replay`.

use std::io::Write;
use std::process::{Command, Stdio};

/// Returns the program's reply to each line, from one run.
pub(crate) fn replies(lines: &[impl AsRef<[u8]>]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input: Vec<u8> = lines.iter().flat_map(|line| [line.as_ref(), b"\n"]).flatten().copied().collect();
    // The program writes while it still reads.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let replies: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(replies.len(), lines.len());
    replies
}
