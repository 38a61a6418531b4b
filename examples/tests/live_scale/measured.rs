//! Program whose time and memory are measured.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::stand_in::{StandIn, program_at};

/// Longest time that anything takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Pause between two looks at a process that ends.
const LOOK: Duration = Duration::from_millis(2);

/// Time and memory that a process has taken up to now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) processor: Duration,
    /// Largest amount that was resident, in MiB.
    memory: u64,
}

impl Usage {
    /// Reads the usage of a process; `None` if it has ended.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let time = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let processor = Duration::from_nanos(threads.flatten().filter_map(time).sum());
        Some(Self { processor, memory: kib / 1024 })
    }
}

/// Row of the table.
#[derive(Debug, Default)]
pub(crate) struct Row {
    name: String,
    usage: Usage,
    start: Option<(Duration, Duration)>,
    /// Times of each reaction.
    reactions: Vec<(Duration, Duration)>,
}

impl Row {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(crate) fn started(mut self, begin: Instant, usage: Usage) -> Self {
        (self.start, self.usage) = (Some((begin.elapsed(), usage.processor)), usage);
        self
    }

    /// Prints the row: start, memory, and the longest reaction, each with its processor time.
    pub(crate) fn print(&self) {
        let ms = |time: Duration| format!("{}.{:02} s", time.as_secs(), time.subsec_millis() / 10);
        let fine = |time: Duration| format!("{}.{:01} ms", time.as_millis(), time.subsec_micros() % 1000 / 100);
        let (start, of_it) = self.start.map(|(wall, processor)| (ms(wall), ms(processor))).unwrap_or_default();
        let slowest = self.reactions.iter().max().map(|(wall, _)| fine(*wall)).unwrap_or_default();
        let number = u32::try_from(self.reactions.len()).unwrap();
        let sum: Duration = self.reactions.iter().map(|(_, processor)| *processor).sum();
        let mean = sum.checked_div(number).map(fine).unwrap_or_default();
        let Self { name, usage: Usage { memory, .. }, .. } = self;
        println!("| {name} | {start} | {of_it} | {memory} MiB | {slowest} | {mean} |");
        assert!(self.start.is_none_or(|(wall, _)| wall < PATIENCE), "not in time");
    }
}

/// Program that is measured until it is dropped.
pub(crate) struct Measured {
    process: Child,
    /// Lines that it says. They are always read: a program whose output nobody reads stands still.
    lines: Receiver<String>,
    row: Row,
}

impl Measured {
    /// Starts a program that stays, and waits for a line with some words.
    pub(crate) fn start(row: &str, program: &str, server: &StandIn, args: &[&str], words: &str) -> Self {
        let (begin, mut measured) = (Instant::now(), Self::spawn(row, program, server, args));
        measured.says(words);
        measured.has_started(begin);
        measured
    }

    /// Starts a program that says nothing when it has begun.
    pub(crate) fn spawn(row: &str, program: &str, server: &StandIn, args: &[&str]) -> Self {
        let mut command = Command::new(program_at(program));
        command.args(args).args(["--server", &server.url]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let stdout = process.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, lines, row: Row::new(row) }
    }

    pub(crate) fn has_started(&mut self, begin: Instant) {
        self.row = std::mem::take(&mut self.row).started(begin, self.usage());
    }

    fn usage(&self) -> Usage {
        Usage::of(self.process.id()).unwrap()
    }

    /// Reads up to a line with some words.
    pub(crate) fn says(&self, words: &str) {
        let found = self.lines.iter().any(|line| line.contains(words));
        assert!(found, "{}: it never says {words:?}", self.row.name);
    }

    /// Makes a change, and measures until the program has reacted.
    pub(crate) async fn reacts(&mut self, change: impl Future<Output = ()>, words: &str) {
        let (begin, before) = (Instant::now(), self.usage());
        change.await;
        self.says(words);
        self.has_reacted(begin, before);
    }

    /// Measures a change and the reaction to it, which another program shows.
    pub(crate) async fn reacts_by(&mut self, reaction: impl Future<Output = ()>) {
        let (begin, before) = (Instant::now(), self.usage());
        reaction.await;
        self.has_reacted(begin, before);
    }

    fn has_reacted(&mut self, begin: Instant, before: Usage) {
        let now = self.usage();
        self.row.usage = now;
        self.row.reactions.push((begin.elapsed(), now.processor.saturating_sub(before.processor)));
    }

    pub(crate) fn print(&self) {
        self.row.print();
    }

    /// Prints the row, and begins another one about reactions of the same process.
    pub(crate) fn another(&mut self, row: &str) {
        self.print();
        self.row = Row::new(row);
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a program to its end, and prints its row. It must say some words.
pub(crate) fn run(row: &str, program: &str, server: &StandIn, args: &[&str], words: &str) {
    let mut command = Command::new(program_at(program));
    command.args(args).args(["--server", &server.url]).stderr(Stdio::null());
    let begin = Instant::now();
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let stdout = process.stdout.take().unwrap();
    let reader = std::thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).collect::<Vec<_>>());
    let mut usage = Usage::default();
    while process.try_wait().unwrap().is_none() {
        usage = Usage::of(process.id()).unwrap_or(usage);
        std::thread::sleep(LOOK);
    }
    let said = reader.join().unwrap();
    assert!(said.iter().any(|line| line.contains(words)), "{row}: it never says {words:?}");
    Row::new(row).started(begin, usage).print();
}
