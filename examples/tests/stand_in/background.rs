//! Programs that run beside a test, what they say, and what they serve.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Program that runs until the test is over.
pub(crate) struct Background {
    pub(crate) process: Child,
    stdout: Lines,
    stderr: Lines,
}

/// Lines of a program as it says them. They are read at once: a program whose output nobody reads would wait.
struct Lines {
    received: Receiver<String>,
    /// Lines that were passed over, for the message of a failure.
    passed: String,
}

impl Lines {
    fn read(pipe: impl Read + Send + 'static) -> Self {
        let (send, received) = mpsc::channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = String::new();
            while pipe.read_line(&mut line).is_ok_and(|length| length > 0)
                && send.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        Self { received, passed: String::new() }
    }

    /// Waits for a line with some words.
    fn wait_for(&mut self, words: &str) -> String {
        self.wait_for_any(&[words])
    }

    /// Waits for a line with the words of one of several texts.
    fn wait_for_any(&mut self, words: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            match self.received.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
                Ok(line) if words.iter().any(|words| line.contains(words)) => return line,
                Ok(line) => self.passed.push_str(&line),
                Err(end) => panic!("it never says {words:?} ({end}), but\n{}", self.passed),
            }
        }
    }

    /// Returns the lines up to the end.
    fn rest(&self) -> String {
        self.received.iter().collect()
    }
}

impl Background {
    pub(crate) fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        let mut process = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        Self { process, stdout: Lines::read(stdout), stderr: Lines::read(stderr) }
    }

    /// Waits for a line on stdout.
    pub(crate) fn says(&mut self, words: &str) -> String {
        self.stdout.wait_for(words)
    }

    /// Waits for lines on stdout with each of some words, in any order.
    pub(crate) fn says_all(&mut self, words: &[&str]) {
        let mut left = words.to_vec();
        while !left.is_empty() {
            let line = self.stdout.wait_for_any(&left);
            left.retain(|words| !line.contains(words));
        }
    }

    /// Waits for a line on stderr.
    pub(crate) fn warns(&mut self, words: &str) -> String {
        self.stderr.wait_for(words)
    }

    /// Waits for the address of the metrics, and returns its host and port.
    pub(crate) fn vitals(&mut self) -> String {
        let line = self.warns("metrics at http://");
        line.trim().strip_prefix("metrics at http://").unwrap().strip_suffix("/metrics").unwrap().to_owned()
    }

    /// Returns what it has said on stdout until its end, as far as that was not read.
    pub(crate) fn rest(&self) -> String {
        self.stdout.rest()
    }

    pub(crate) fn terminate(&mut self) -> Option<i32> {
        Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns what a server answers to a request for a path.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: vitals\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

/// Longest time that a program takes on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a program serves some lines among its metrics: it counts after the answer that a test has seen.
pub(crate) async fn until_counted(address: &str, lines: &[String]) {
    let begin = Instant::now();
    loop {
        let metrics = get(address, "/metrics");
        match lines.iter().find(|line| !metrics.contains(&format!("{line}\n"))) {
            None => return,
            Some(line) => assert!(begin.elapsed() < PATIENCE, "not in time: {line} in {metrics}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
