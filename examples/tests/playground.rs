//! `playground`: one command from nothing to a pod with its device, and to nothing again; also with a driver of somebody else.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};

/// Programs that `playground` starts: this makes cargo build them.
const STARTED: [&str; 3] =
    [env!("CARGO_BIN_EXE_kubelet"), env!("CARGO_BIN_EXE_scheduler"), env!("CARGO_BIN_EXE_driver")];

fn playground(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_playground")).args(args).output().unwrap()
}

#[test]
fn a_pod_gets_its_device_and_goes() {
    assert_eq!(STARTED.len(), 3);
    let output = playground(&[]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let steps = [
        "claim serve: has gpu.example.com/node-1/board-0-whole",
        "pod serve: Running on node-1",
        "all pods run",
        "all pods are gone, and their claims are unprepared",
    ];
    let mut rest = told.as_str();
    for step in steps {
        let (_, behind) = rest.split_once(step).unwrap_or_else(|| panic!("{step} does not follow: {told}"));
        rest = behind;
    }
    assert!(told.contains("driver    | default/serve: prepared: k8s.gpu.example.com/claim="), "{told}");
}

#[test]
fn a_driver_of_somebody_else_runs_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let driver = format!(
        "{} serve --live --server SERVER --driver gpu.example.com --devices {}/data/live/boards.yaml --registry \
         $PWD/plugins_registry --plugin-dir $PWD/plugins --state state --cdi cdi",
        env!("CARGO_BIN_EXE_driver"),
        env!("CARGO_MANIFEST_DIR")
    );
    let args = ["--driver-command", &driver, "--driver-folder", folder.path().to_str().unwrap()];
    let output = playground(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(folder.path().join("state/ledger.json").exists());
}

#[test]
fn a_pod_that_does_not_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--driver-command", "sleep 60", "--driver-folder", folder.path().to_str().unwrap(), "--seconds", "3"];
    let output = playground(&args);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "playground: not in time: serve to run\n");
}

#[test]
fn a_driver_that_ends_ends_the_trial() {
    let folder = tempfile::tempdir().unwrap();
    let output = playground(&["--driver-command", "false", "--driver-folder", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "playground: the program driver ended: exit status: 1\n");
}

#[test]
fn a_trial_that_is_told_to_stop_takes_its_programs_along() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let driver = format!("sh -c 'echo $$ >{}; exec sleep 60'", pid.display());
    let args = ["--driver-command", &driver, "--driver-folder", folder.path().to_str().unwrap()];
    let mut playground = Command::new(env!("CARGO_BIN_EXE_playground"));
    playground.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let playground = playground.spawn().unwrap();
    let driver = loop {
        match std::fs::read_to_string(&pid) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    let is_there = || std::path::Path::new("/proc").join(&driver).exists();
    assert!(is_there());
    // It may have no handler yet.
    std::thread::sleep(std::time::Duration::from_millis(500));
    Command::new("kill").args(["-TERM", &playground.id().to_string()]).status().unwrap();
    let ended = playground.wait_with_output().unwrap();
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
        (Some(1), "playground: told to stop\n")
    );
    assert!(!is_there());
}
