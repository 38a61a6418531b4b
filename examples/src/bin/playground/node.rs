//! The programs around the server: kubelet, scheduler and driver, each in a process that ends with the trial.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use examples::output::put;
use tempfile::TempDir;

/// Programs of this package that are started.
const PROGRAMS: [&str; 3] = ["kubelet", "scheduler", "driver"];

/// Flags of the scheduler: it places all pods, whether they name it or not.
const SCHEDULER: [&str; 5] = ["--bind", "--scheduler-name", "dra-sdk", "--scheduler-name", "default-scheduler"];

/// Pause between two looks at the programs.
const LOOK: Duration = Duration::from_millis(200);

/// Devices of the driver of this package.
const BOARDS: &str = include_str!("../../../data/live/boards.yaml");

/// Reason that a program does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error("{program}: {error}")]
    Start { program: String, error: io::Error },
    #[error("{0} is missing, and cargo could not build it: cargo build -p examples --features live --bins")]
    Missing(String),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
}

/// Processes of the node. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    processes: Vec<(&'static str, Child)>,
    folder: TempDir,
}

impl Node {
    /// Starts the programs, with a driver of the user's own if there is one: its command, and its folder.
    ///
    /// # Errors
    /// A program is missing and can't be built, or does not start.
    pub(crate) fn start(url: &str, release: &str, own: Option<(&str, &Path)>) -> Result<Self, NodeError> {
        let folder = TempDir::new().map_err(|error| NodeError::File { path: env::temp_dir(), error })?;
        let at = |name: &str| folder.path().join(name);
        let home = own.map_or_else(|| folder.path().to_owned(), |(_, home)| home.to_owned());
        let registry = home.join("plugins_registry");
        let boards = at("boards.yaml");
        let failed = |path: &Path| {
            let path = path.to_owned();
            |error| NodeError::File { path, error }
        };
        fs::create_dir_all(&registry).map_err(failed(&registry))?;
        let registry = fs::canonicalize(&registry).map_err(failed(&registry))?;
        fs::write(&boards, BOARDS).map_err(failed(&boards))?;
        let text = |path: &Path| path.display().to_string();
        let on_cluster = ["--live", "--server", url, "--release", release];
        let mut node = Self { processes: Vec::new(), folder };
        let (registry, state) = (text(&registry), text(&node.at("checkpoint")));
        let kubelet = [&on_cluster[..], &["--registry", &registry, "--state", &state]].concat();
        node.run("kubelet", &mut command("kubelet", &kubelet)?)?;
        node.run("scheduler", &mut command("scheduler", &[&on_cluster[..], &SCHEDULER].concat())?)?;
        if let Some((line, home)) = own {
            let mut shell = Command::new("sh");
            shell.current_dir(home).args(["-c", &format!("exec {}", line.replace("SERVER", url))]);
            node.run("driver", &mut shell)?;
        } else {
            let [plugin, state, cdi] = ["plugins", "state", "cdi"].map(|name| text(&node.at(name)));
            let args = ["serve", "--live", "--server", url, "--driver", "gpu.example.com", "--devices", &text(&boards)];
            let folders = ["--registry", &registry, "--plugin-dir", &plugin, "--state", &state, "--cdi", &cdi];
            node.run("driver", &mut command("driver", &[&args[..], &folders].concat())?)?;
        }
        Ok(node)
    }

    /// Waits until a program ends, which none of them does before the trial. Returns its name and how it ended.
    pub(crate) async fn until_one_ends(&mut self) -> String {
        loop {
            for (name, process) in &mut self.processes {
                if let Ok(Some(status)) = process.try_wait() {
                    return format!("{name} ended: {status}");
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&mut self, name: &'static str, command: &mut Command) -> Result<(), NodeError> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the trial: the programs are needed until the pods are gone.
        let started = command.process_group(0).spawn();
        let mut process = started.map_err(|error| NodeError::Start { program: name.to_owned(), error })?;
        if let Some(output) = process.stdout.take() {
            tell(name, output);
        }
        if let Some(output) = process.stderr.take() {
            tell(name, output);
        }
        self.processes.push((name, process));
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for (_, process) in &mut self.processes {
            // One that has ended needs no end.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Prints the lines of a program, each with its name.
fn tell(name: &'static str, output: impl Read + Send + 'static) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            if put(&format!("{name:<10}| {line}\n")).is_err() {
                return;
            }
        }
    });
}

/// Returns the command of a program of this package, which is built if it is missing.
fn command(name: &str, args: &[&str]) -> Result<Command, NodeError> {
    let missing = || NodeError::Missing(name.to_owned());
    let own = env::current_exe().map_err(|_| missing())?;
    let path = own.with_file_name(name);
    if !path.exists() {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "examples", "--features", "live"]);
        build.args(PROGRAMS.into_iter().flat_map(|program| ["--bin", program]));
        if !build.status().is_ok_and(|status| status.success()) || !path.exists() {
            return Err(missing());
        }
    }
    let mut command = Command::new(path);
    command.args(args);
    Ok(command)
}
