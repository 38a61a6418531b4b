//! Example DRA driver for PCI devices: prints the `ResourceSlice`s for this machine, a directory with the layout of
//! `/sys`, or a captured machine.
//!
//! The documents go to stdout. Omitted devices and attributes go to stderr with the reason, one line each. With
//! `--stored`, only slices that must be written are printed, and each write is a line on stderr. With `--check`, slices
//! that the API server would reject or change are not printed; their problems go to stderr.

mod migrate;
mod node;
mod publish;
mod survey;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Parser, ValueEnum};
use dra_alloc::DroppedField;
use dra_alloc::driver::SliceWrite;
use dra_alloc::validate::{ApiServer, PublishError, Write};
use dra_attrs::{Component, FieldErrors, FullyQualifiedName, GateError, NameFormat, Profile, VendorDriver};
use dra_live::slice_lines::slice_lines;
use examples::feature_gates::{DEVICE_GATES, feature_gates};
use examples::output::{OutputError, Trouble, as_json, program, put, say};
use examples::release_args::ReleaseArgs;
use k8s_openapi::api::resource::v1::ResourceSlice;
use survey::{KIND, Survey};

/// Prints the resource slices that a DRA driver would publish for the PCI devices of a machine
#[derive(Debug, Parser)]
#[command(name = "driver", version, args_conflicts_with_subcommands = true, mut_arg("profile", |arg| arg.requires("check").conflicts_with("server")))]
#[command(group = ArgGroup::new("a server").args(["server", "check"]).multiple(true))]
struct Args {
    #[command(subcommand)]
    command: Option<node::NodeCommand>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Format of the document
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    /// Name of the node and of the pool
    #[arg(long, value_name = "NAME", default_value = "node-1", value_parser = node_name)]
    node_name: String,
    /// Name of the driver
    #[arg(long, value_name = "NAME", default_value = "pci.example.com", value_parser = driver_name)]
    driver: String,
    /// Slices of vendors' drivers, as YAML or JSON files: adds the standard numaNode beside the vendor's attribute, and
    /// prints them instead of a slice of its own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sysfs", "capture"])]
    migrate: Vec<String>,
    /// Vendor of a driver, as DRIVER=VENDOR (nvidiaGpu, amdGpu, dranet, sriovNic, cpu, memory); may be repeated
    #[arg(long, value_name = "DRIVER=VENDOR", value_parser = migrate::vendor, requires = "migrate")]
    vendor: Vec<(String, VendorDriver)>,
    /// Slices that are stored, as YAML or JSON files: prints what must be written, and says which writes they are
    #[arg(long, value_name = "FILE", conflicts_with = "migrate")]
    stored: Vec<String>,
    /// Version of the API server that the slices are for: it decides how many devices a slice has, and fields that it would
    /// not keep are left out. Without it slices are as large as 1.37 takes them, with all fields
    #[arg(long, value_name = "VERSION", value_parser = publish::server)]
    server: Option<Profile>,
    /// Check the slices as an API server does; if one would not be stored, none is printed
    #[arg(long)]
    check: bool,
    /// Feature gates of that API server that differ from the defaults
    #[arg(long, value_name = "NAME=BOOL,...", default_value = "", requires = "a server")]
    feature_gates: String,
    /// Print every problem that the API server would find, not only the first eight
    #[arg(long, requires = "check")]
    all_problems: bool,
    /// Rules of that API server.
    #[command(flatten)]
    rules: ReleaseArgs,
}

/// Machine whose devices are published.
#[derive(clap::Args, Debug)]
struct MachineArgs {
    /// Directory to read as /sys
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    sysfs: PathBuf,
    /// Captured machine to read instead of /sys
    #[arg(long, value_name = "NAME", conflicts_with = "sysfs")]
    capture: Option<String>,
    /// Publish numaNode as a list of the local nodes
    #[arg(long)]
    list: bool,
}

/// Largest number of problems that are printed without being asked for.
const MOST_PROBLEMS: usize = 8;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

#[derive(Debug, thiserror::Error)]
enum DriverError {
    #[error(transparent)]
    Machine(#[from] survey::SurveyError),
    #[error(transparent)]
    Slices(#[from] publish::PublishingError),
    #[error("objects of the manifests that can't be read: {0}")]
    Unread(usize),
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("the API server would refuse the slice: {problems} problems")]
    Refused { problems: usize },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("the API server would drop fields of the slice: {}", dropped_fields(fields))]
    Dropped { fields: Vec<DroppedField> },
    #[error(transparent)]
    Node(#[from] node::NodeCommandError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for DriverError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_))
    }
}

fn main() -> ExitCode {
    program(|args: &Args| run(args).map(|()| ExitCode::SUCCESS))
}

fn run(args: &Args) -> Result<(), DriverError> {
    if let Some(command) = &args.command {
        return Ok(node::run(command)?);
    }
    if !args.migrate.is_empty() {
        let migrated = migrate::migrate(&args.migrate, &args.vendor);
        migrated.notes.iter().for_each(note);
        for slice in &migrated.slices {
            put("---\n")?;
            print(slice, args.output)?;
        }
        return if migrated.unread == 0 { Ok(()) } else { Err(DriverError::Unread(migrated.unread)) };
    }
    let survey = Survey::of_machine(&args.machine)?;
    survey.notes().for_each(|line| note(&line));
    let stored = publish::Stored::read(&args.stored);
    stored.notes.iter().for_each(note);
    // A stored slice that is not read would be created once more.
    if stored.unread > 0 {
        return Err(DriverError::Unread(stored.unread));
    }
    let profile = args.server.unwrap_or(args.rules.profile);
    let server = Component::new(profile, feature_gates(&args.feature_gates, profile, &DEVICE_GATES)?);
    let planned_for = args.server.map(|_| server);
    let pass = publish::writes(&args.driver, &args.node_name, &survey.devices, planned_for, &stored.slices)?;
    if args.check {
        let server = ApiServer::new(server);
        pass.writes.iter().try_for_each(|write| check(write, &stored.slices, server, args.all_problems))?;
    }
    if !args.stored.is_empty() {
        slice_lines(&pass).iter().for_each(note);
    }
    let slices: Vec<&ResourceSlice> = pass.writes.iter().filter_map(SliceWrite::slice).collect();
    for slice in &slices {
        if slices.len() > 1 {
            put("---\n")?;
        }
        print(slice, args.output)?;
    }
    Ok(())
}

fn dropped_fields(fields: &[DroppedField]) -> String {
    let texts: Vec<String> = fields.iter().map(|lost| format!("{} ({} is off)", lost.field, lost.gate)).collect();
    texts.join(", ")
}

/// Checks that an API server would store a slice unchanged.
fn check(
    write: &SliceWrite,
    stored: &[ResourceSlice],
    server: ApiServer,
    all_problems: bool,
) -> Result<(), DriverError> {
    let Some(new) = write.slice() else { return Ok(()) };
    let is_old = |old: &&ResourceSlice| old.metadata.uid == new.metadata.uid && old.metadata.name == new.metadata.name;
    match server.publish(Write { old: stored.iter().find(is_old), new }) {
        Ok(admitted) if admitted.dropped.is_empty() => {
            admitted.warnings.iter().for_each(note);
            Ok(())
        }
        Ok(admitted) => Err(DriverError::Dropped { fields: admitted.dropped }),
        Err(PublishError::Invalid(errors)) => {
            problem_lines(&errors, all_problems).iter().for_each(note);
            Err(DriverError::Refused { problems: errors.len() })
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns a line for each problem, or for the first eight with the number of the others.
fn problem_lines(errors: &FieldErrors, all: bool) -> Vec<String> {
    let shown = if all { errors.len() } else { MOST_PROBLEMS };
    let more = errors.len().saturating_sub(shown);
    let rest = (more > 0).then(|| format!("and {more} more, which --all-problems prints"));
    errors.iter().take(shown).map(ToString::to_string).chain(rest).collect()
}

fn note(line: &impl fmt::Display) {
    say(&format_args!("driver: {line}"));
}

fn print(slice: &ResourceSlice, output: Output) -> Result<(), DriverError> {
    let text = match output {
        Output::Yaml => serde_saphyr::to_string(slice).map_err(OutputError::from)?,
        Output::Json => as_json(slice)?,
    };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Ok(put(&(text + end))?)
}

fn node_name(text: &str) -> Result<String, String> {
    match NameFormat::Subdomain.problems(text).into_iter().next() {
        None => Ok(text.to_owned()),
        Some(problem) => Err(problem),
    }
}

/// Checks a driver's name, which is the domain of its attributes.
fn driver_name(text: &str) -> Result<String, String> {
    let attribute = format!("{text}/{KIND}");
    FullyQualifiedName::parse(&attribute).map(|name| name.domain().to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use dra_attrs::{FieldError, FieldPath};

    use super::*;

    #[test]
    fn many_problems_are_cut_unless_asked_for() {
        let devices = FieldPath::new("devices");
        let errors = |count: usize| -> FieldErrors {
            (0..count).map(|index| FieldError::required(&devices.index(index), "")).collect()
        };
        assert_eq!(problem_lines(&errors(8), false).len(), 8);
        let cut = problem_lines(&errors(128), false);
        assert_eq!((cut.len(), cut.last().unwrap().as_str()), (9, "and 120 more, which --all-problems prints"));
        assert_eq!(problem_lines(&errors(128), true).len(), 128);
    }
}
