//! A plan as text, in 80 columns.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Color, Style};

use super::{Move, Moves, PlacedPod, Plan, PlannedWorkload, WaitingPods};
use crate::output::one_line;
use crate::workload::counted;

/// Width of a line.
const WIDTH: usize = 80;

/// Largest number of pods of a workload that have a line, and of names in a list.
const MOST_PODS: usize = 10;
const MOST_NAMES: usize = 3;

const GOOD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));
const BAD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red)));
const HELP: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
const PLAIN: Style = Style::new();

/// Lines of a text that is being written.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Adds a text of somebody else, wrapped at words: the first line begins at `indent`, all others at `hang`.
    fn add(&mut self, style: Style, indent: usize, hang: usize, text: &str) {
        for (index, line) in wrapped(&one_line(text), indent, hang).into_iter().enumerate() {
            let margin = if index == 0 { indent } else { hang };
            // Writing to a string can't fail.
            let _ = writeln!(self.0, "{}{style}{line}{style:#}", " ".repeat(margin));
        }
    }
}

/// Breaks a text at its blanks. A word that is longer than a line has one of its own.
fn wrapped(text: &str, indent: usize, hang: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    // Blanks at the begin and between columns stay.
    for word in text.split_inclusive(' ') {
        let margin = if lines.len() == 1 { indent } else { hang };
        let used = lines.last().map_or(0, |line| line.chars().count());
        let needed = margin + used + word.trim_end().chars().count();
        if needed > WIDTH && used > 0 {
            lines.push(word.to_owned());
        } else if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

impl Plan {
    /// Returns the plan as text with styles. Names in `namespace` are written without it.
    #[must_use]
    pub fn text(&self, namespace: &str) -> String {
        let short = |name: &str| name.strip_prefix(&format!("{namespace}/")).unwrap_or(name).to_owned();
        let mut lines = Lines::default();
        for refused in &self.refused {
            let accepted = refused.accepted.as_ref().map(|span| format!(" (accepted {span})")).unwrap_or_default();
            lines.add(BAD, 0, 2, &format!("{}: {}{accepted}", refused.object, refused.reason));
        }
        for workload in &self.workloads {
            workload.write(&short(&workload.name), &mut lines);
        }
        for note in &self.notes {
            lines.add(HELP, 0, 2, note);
        }
        let style = if self.is_whole() { GOOD } else { BAD };
        let release = match self.release.strip_prefix('v') {
            Some(number) => format!("Kubernetes {number}"),
            None => self.release.to_owned(),
        };
        let made = if self.has_made_names { "; pod names are made up" } else { "" };
        let refused = match self.refused.len() {
            0 => String::new(),
            some => format!("; {} above", counted(some, "refusal")),
        };
        let choice = match (self.placed, self.has_priorities) {
            (0, _) => "",
            (_, false) => ", on the first node that fits",
            (_, true) => ", as if all waited together, the highest priority first, on the first node that fits",
        };
        let all = match self.pods {
            0 => format!("no pods to place by the rules of {release}{refused}"),
            pods => {
                let pods = counted(pods, "pod");
                format!("{} of {pods} placed by the rules of {release}{choice}{refused}{made}", self.placed)
            }
        };
        lines.add(style, 0, 2, &all);
        lines.0
    }
}

impl PlannedWorkload {
    fn write(&self, name: &str, lines: &mut Lines) {
        let waiting: usize = self.waiting.iter().map(|group| group.pods.len()).sum();
        let pods = self.placed.len() + waiting;
        let running = (self.running > 0).then(|| format!("{} there already", counted(self.running, "pod")));
        let placed = match self.idle {
            Some(idle) if pods == 0 => format!("no pods: {idle}"),
            _ => format!("{} of {} placed", self.placed.len(), counted(pods, "pod")),
        };
        let run = if self.kind == "CronJob" && pods > 0 { "each run: " } else { "" };
        let later = if self.later > 0 { format!(", {} more as these end", self.later) } else { String::new() };
        let placed = format!("{run}{placed}{later}");
        let placed = if pods == 0 && self.idle.is_none() { None } else { Some(placed) };
        let parts: Vec<String> = [Some(self.accepted.clone()), running, placed].into_iter().flatten().collect();
        lines.add(PLAIN, 0, 2, &format!("{} {name}: {}", self.kind, parts.join("; ")));
        let shown = self.placed.iter().take(MOST_PODS);
        let width = |of: fn(&PlacedPod) -> &str| shown.clone().map(|pod| of(pod).chars().count()).max().unwrap_or(0);
        let (name_width, node_width) = (width(|pod| &pod.name), width(|pod| &pod.node));
        for pod in shown.clone() {
            let devices = devices(pod);
            let line = format!("{:name_width$}  {:node_width$}  {devices}", pod.name, pod.node);
            lines.add(GOOD, 2, 4, line.trim_end());
            pod.choice.iter().for_each(|reason| lines.add(PLAIN, 4, 6, reason));
            pod.passed_over.iter().for_each(|nodes| lines.add(PLAIN, 4, 6, &format!("passed over {nodes}")));
        }
        if let Some(more) = self.placed.len().checked_sub(MOST_PODS).filter(|more| *more > 0) {
            lines.add(GOOD, 2, 4, &format!("and {more} more, which -o json has"));
        }
        self.waiting.iter().for_each(|group| group.write(lines));
        if !self.unchecked.is_empty() {
            lines.add(HELP, 2, 4, &format!("not looked at: {}", self.unchecked.join(", ")));
        }
    }
}

impl WaitingPods {
    fn write(&self, lines: &mut Lines) {
        let names = self.pods.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.pods.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if self.pods.len() == 1 { "waits" } else { "wait" };
        // Deeper than the lines that follow, so that these don't read on.
        lines.add(BAD, 2, 6, &format!("{names}{more} {verb}: {}", self.reason));
        self.selectors.iter().for_each(|term| lines.add(PLAIN, 4, 6, &term.to_string()));
        self.help.iter().for_each(|help| lines.add(HELP, 4, 6, help));
        self.moves.iter().for_each(|moves| lines.add(HELP, 4, 6, &moves.to_string()));
        self.room.iter().for_each(|room| lines.add(HELP, 4, 6, &room.to_string()));
    }
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, moves, waves, is_least } = self;
        let moves: Vec<String> = moves.iter().map(ToString::to_string).collect();
        write!(f, "would fit on {node} after moving {}", moves.join(", then "))?;
        if *waves > 1 {
            write!(f, ", in {waves} waves as disruption budgets ask")?;
        }
        if *is_least { Ok(()) } else { f.write_str("; other moves may be smaller") }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, from, to } = self;
        if from == to { write!(f, "{pod} to other devices of {to}") } else { write!(f, "{pod} from {from} to {to}") }
    }
}

/// Devices of one pool with the same remark.
struct Group<'p> {
    /// Driver and pool.
    pool: &'p str,
    remark: Option<&'p str>,
    names: Vec<&'p str>,
}

/// Returns the devices of a pod in short: those of the node's own pools by their names alone, after the driver; those with the
/// same remark together.
fn devices(pod: &PlacedPod) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for device in &pod.devices {
        let (pool, name) = device.rsplit_once('/').unwrap_or(("", device));
        let remark = pod.remarks.get(device).map(String::as_str);
        match groups.iter_mut().find(|known| known.pool == pool && known.remark == remark) {
            Some(known) => known.names.push(name),
            None => groups.push(Group { pool, remark, names: vec![name] }),
        }
    }
    let shown = groups.into_iter().map(|Group { pool, remark, names }| {
        let own = pool.strip_suffix(pod.node.as_str()).and_then(|pool| pool.strip_suffix('/')).unwrap_or(pool);
        let remark = remark.map(|remark| format!(" ({remark})")).unwrap_or_default();
        format!("{own}: {}{remark}", names.join(", "))
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words() {
        let text = "word ".repeat(40);
        for line in wrapped(text.trim(), 2, 4) {
            assert!(line.chars().count() + 4 <= WIDTH, "{line}");
        }
        assert_eq!(wrapped("a  b", 0, 2), ["a  b"]);
        let long = "x".repeat(100);
        assert_eq!(wrapped(&format!("a {long} b"), 0, 2), ["a", long.as_str(), "b"]);
    }

    #[test]
    fn devices_of_the_node_s_own_pool_are_named_alone() {
        let all = ["d.example/n/a", "d.example/n/b", "d.example/rack/c"].map(str::to_owned);
        let remarks = [(all[2].clone(), "bandwidth 5G".to_owned())].into();
        let pod = PlacedPod {
            name: "p".to_owned(),
            node: "n".to_owned(),
            devices: all.to_vec(),
            remarks,
            choice: None,
            passed_over: None,
        };
        assert_eq!(devices(&pod), "d.example: a, b; d.example/rack: c (bandwidth 5G)");
    }
}
