//! Transcripts of pages: their commands print their lines. Those of docs/live.md start a stand-in themselves.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;
use tempfile::TempDir;

const LIVE: &str = include_str!("../../docs/live.md");
const FOR_PLATFORM_ENGINEERS: &str = include_str!("../../docs/for-platform-engineers.md");

/// Port of the page, in whose place a free one is taken.
const PORT: &str = "8001";

/// Longest time until a command prints the lines of the page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Texts that differ from run to run, each with the text that stands for it.
const VARYING: [(&str, &str); 5] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"-[0-9a-f]{10}\b", "-HASH"),
    (r"\b\d+s\b", "AGE"),
    (r"(ResourceSlices|ResourceClaims|DeviceTaintRules) \d+", "$1 VERSION"),
    (r"\s+", " "),
];

/// A command of the page, with the lines that it prints.
struct Step {
    command: String,
    lines: Vec<String>,
}

/// Reads the commands of the transcripts in a text.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), lines: Vec::new() });
                continue;
            }
            let step = steps.last_mut().unwrap();
            match step.command.strip_suffix('\\') {
                Some(begun) => step.command = format!("{begun}{}", line.trim_start()),
                None => step.lines.push(line.to_owned()),
            }
        }
    }
    steps
}

/// A shell, in a folder that commands may change, with programs that run beside it.
struct Shell {
    home: TempDir,
    folder: PathBuf,
    /// Commands before each command.
    before: &'static str,
    path: String,
    port: String,
    varying: Vec<(Regex, &'static str)>,
    running: Vec<Child>,
}

impl Shell {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), home.path().join("dra-sdk")).unwrap();
        let programs = Path::new(env!("CARGO_BIN_EXE_kubectl-dra")).parent().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self {
            folder: home.path().to_owned(),
            before: "",
            home,
            path: format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()),
            port: port.to_string(),
            varying: VARYING.map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).to_vec(),
            running: Vec::new(),
        }
    }

    fn bash(&self, script: &str) -> Command {
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(&self.folder).env("PATH", &self.path).env("HOME", self.home.path());
        bash.stdin(Stdio::null());
        bash
    }

    /// Returns a text as it is in each run.
    fn same(&self, text: &str) -> String {
        let text = text.trim_end().replace(&self.port, PORT);
        self.varying.iter().fold(text, |text, (pattern, by)| pattern.replace_all(&text, *by).into_owned())
    }

    /// Runs a command once, and returns its output.
    fn output(&mut self, command: &str) -> String {
        let left = self.home.path().join("folder");
        let output = self.bash(&format!("{}{command}\npwd >{}", self.before, left.display())).output().unwrap();
        self.folder = PathBuf::from(fs::read_to_string(left).unwrap().trim());
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
    }

    /// Returns the lines of the page that an output lacks.
    fn missing<'l>(&self, lines: &'l [String], output: &str) -> Vec<&'l str> {
        let printed: Vec<String> = output.lines().map(|line| self.same(line)).collect();
        lines.iter().map(String::as_str).filter(|line| !printed.contains(&self.same(line))).collect()
    }

    fn take(&mut self, step: &Step) {
        let server = format!("apiserver --port {}", self.port);
        let command = step.command.replace(PORT, &self.port).replace("apiserver", &server);
        if let Some(program) = command.strip_suffix('&') {
            self.running.push(self.bash(&format!("exec {program}")).stdout(Stdio::null()).spawn().unwrap());
            return;
        }
        // A command that looks is repeated: the programs beside it work meanwhile.
        let looks = ["get ", " why", "ls ", "cat ", "pool-status "].iter().any(|word| command.contains(word));
        let begin = Instant::now();
        loop {
            let output = self.output(&command);
            let missing = self.missing(&step.lines, &output);
            if missing.is_empty() {
                return;
            }
            assert!(looks && begin.elapsed() < PATIENCE, "{command}\nprints no {missing:#?}, but\n{output}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn transcripts_on_files_are_printed() {
    let (mut shell, steps) = (Shell::new(), steps(FOR_PLATFORM_ENGINEERS));
    shell.folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/plans");
    // What kubectl does with a plugin.
    shell.before = "kubectl() { shift; kubectl-dra \"$@\"; }\n";
    assert!(steps.len() > 3 && steps.iter().all(|step| !step.lines.is_empty()));
    for step in &steps {
        shell.take(step);
    }
}

#[test]
#[ignore = "needs kubectl, which a machine may not have"]
fn kubectl_the_transcript_without_a_cluster_is_printed() {
    let section = LIVE.split("\n## Without a cluster\n").nth(1).unwrap().split("\n##").next().unwrap();
    let (mut shell, steps) = (Shell::new(), steps(section));
    assert!(steps.len() > 15 && steps.iter().filter(|step| !step.lines.is_empty()).count() > 10);
    for step in &steps {
        shell.take(step);
    }
}
