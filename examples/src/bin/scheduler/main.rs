//! Allocates the pending claims of a cluster, given as manifests, and explains what can't be allocated.
//!
//! Allocations go to stdout, and so do the reasons of claims that are not allocated; with `-o json` or `-o yaml` the
//! reasons go to stderr. Problems of manifests go to stderr too.
//!
//! With `--live` it works on a cluster: `why` explains what is pending there, and `--bind` makes it a second scheduler.

mod args;
mod evict;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod pods;
mod print;
mod schedule;

use std::process::ExitCode;

use args::{Args, Command, Explain};
use dra_alloc::pods::PodOptions;
use dra_alloc::skip::WireForm;
use dra_alloc::{Classes, Gate, GateSet};
use dra_attrs::{Component, GateError, Profile, VersionError};
use examples::eviction_preview::refused_rules;
use examples::feature_gates::{DEVICE_GATES, feature_gates};
use examples::manifest::Manifests;
use examples::objective_file::{ObjectiveFileError, objective_of};
use examples::output::{Format, OutputError, Trouble, as_json, as_yaml, program, put, say};
use examples::plan::{Devices, terms_of_claims};
use examples::workload;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::api::resource::v1::ResourceSlice;
use print::{UnwritableClaim, choices, claims, list, refusals, restrictions, table};
use schedule::{Answer, Fate, Schedule, ScheduleError, Settings, schedule};

/// Allocator that is faster than that of most systems: objects of the API are many small pieces.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Kinds of objects that the program uses.
const USED: [&str; 6] = ["DeviceClass", "DeviceTaintRule", "Node", "PodGroup", "ResourceClaim", "ResourceSlice"];

/// Version of the scheduler, against which features that end with a version are compared.
const VERSION: &str = "1.37.0";

#[derive(Debug, thiserror::Error)]
enum SchedulerError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Claim(#[from] UnwritableClaim),
    #[error("why: says why pods of a cluster are pending, and needs --live before it")]
    WhyWithoutCluster,
    #[error("--bind: prints lines, as sentences or with -o json")]
    BindAsYaml,
    #[error("evict: reads manifests, and no cluster with --live")]
    EvictOnCluster,
    #[error(transparent)]
    Objective(#[from] ObjectiveFileError),
    #[error(transparent)]
    Evict(#[from] evict::EvictError),
    #[error(transparent)]
    Live(#[from] live::LiveError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for SchedulerError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_) | Self::WhyWithoutCluster | Self::EvictOnCluster | Self::BindAsYaml)
    }
}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, SchedulerError> {
    let mut settings = Settings::new(args.rules.profile, VERSION.parse()?);
    settings.nodes.clone_from(&args.nodes);
    settings.gates = feature_gates(&args.feature_gates, args.rules.profile, &DEVICE_GATES)?;
    settings.detail = args.explain.into();
    settings.best_fit = args.best_fit;
    if let Some(file) = &args.objective {
        settings.objective = objective_of(file)?;
    }
    if let Some(Command::Evict(question)) = &args.command {
        if args.server.live {
            return Err(SchedulerError::EvictOnCluster);
        }
        let options = PodOptions::new(Component::new(args.rules.profile, settings.gates));
        return Ok(evict::run(question, args.cluster.manifest(), options, args.output)?);
    }
    if args.bind && args.output == Format::Yaml {
        return Err(SchedulerError::BindAsYaml);
    }
    if args.server.live {
        return Ok(live::run(args, &settings).map(|()| ExitCode::SUCCESS)?);
    }
    if args.command.is_some() {
        return Err(SchedulerError::WhyWithoutCluster);
    }
    let mut manifests =
        args.workloads.of_release(args.rules.profile).with_arguments(&args.files, args.cluster.manifest());
    report(&manifests, settings.gates, args.pods);
    let made = workload::make(&mut manifests, PodOptions::new(Component::new(args.rules.profile, settings.gates)));
    made.lines("scheduler").iter().for_each(say);
    if args.pods {
        put(&(pods::schedule(&manifests, &settings)? + &manifests.mark()))?;
        return Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let scheduled = schedule(&manifests, &settings)?;
    print(&scheduled, &manifests, args)?;
    if args.output == Format::Table {
        put(&manifests.mark())?;
    }
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the problems and notes of the manifests to stderr.
fn report(manifests: &Manifests, gates: GateSet, with_pods: bool) {
    manifests.problems.iter().for_each(say);
    manifests.notes.iter().for_each(say);
    refused_rules(&manifests.taint_rules).iter().for_each(say);
    manifests.ignored_lines("scheduler", &[&USED[..], &workload::KINDS[..]].concat()).iter().for_each(say);
    let classes = Classes::new(manifests.classes.iter().cloned());
    let has_no_claim = |pod: &&Pod| {
        let spec = pod.spec.as_ref();
        spec.is_none_or(|spec| spec.resource_claims.is_none() && !requests_devices(spec, &classes))
    };
    let pods = manifests.pods.iter().filter(has_no_claim).count();
    if pods > 0 {
        say(&format_args!("scheduler: ignored: Pod ({pods}) without claims; nominate reads it"));
    }
    if manifests.nodes.is_empty() {
        say(&"scheduler: no Node among the manifests: nothing can be allocated");
    }
    if gates.has(Gate::NodeAllocatableResources) && !with_pods {
        say(&"scheduler: what devices take of a node's CPU and memory counts with --pods only");
    }
    if !gates.has(Gate::ListTypeAttributes) && manifests.slices.iter().any(has_lists) {
        say(&"scheduler: there are lists of attribute values; constraints match them with \
             --feature-gates DRAListTypeAttributes=true only");
    }
}

/// Returns true if a container requests an extended resource that a device class serves.
fn requests_devices(spec: &PodSpec, classes: &Classes) -> bool {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let resources = containers.filter_map(|container| container.resources.as_ref());
    let mut names = resources.flat_map(|resources| resources.requests.iter().flatten().map(|(name, _)| name));
    names.any(|name| classes.of_extended_resource(name).is_some())
}

fn has_lists(slice: &ResourceSlice) -> bool {
    let attributes = slice.spec.devices.iter().flatten().flat_map(|device| device.attributes.iter().flatten());
    let mut values = attributes.map(|(_, value)| value);
    values.any(|value| {
        value.ints.is_some() || value.strings.is_some() || value.bools.is_some() || value.versions.is_some()
    })
}

/// Returns a line for each term of a selector that keeps devices from a claim without an allocation, with the values that
/// there are.
fn false_terms(scheduled: &Schedule, manifests: &Manifests, profile: Profile) -> String {
    let is_refused = |answer: &&Answer| matches!(answer.fate, Fate::Nowhere { .. } | Fate::Failed(_));
    let claims = scheduled.answers.iter().filter(is_refused).map(|answer| &answer.claim);
    let classes = Classes::new(manifests.classes.iter().cloned());
    let answers = terms_of_claims(claims, &classes, &Devices::new(&manifests.slices), profile);
    let lines: Vec<String> = answers.iter().map(|term| term.to_string() + "\n").collect();
    lines.concat()
}

fn print(scheduled: &Schedule, manifests: &Manifests, args: &Args) -> Result<(), SchedulerError> {
    let (answers, slices) = (&scheduled.answers, &manifests.slices);
    let mut refusals = refusals(answers, args.explain.into());
    if args.explain == Explain::Full {
        refusals.push_str(&false_terms(scheduled, manifests, args.rules.profile));
    }
    for line in choices(answers).into_iter().chain(restrictions(&scheduled.restricted)) {
        refusals.push_str(&line);
        refusals.push('\n');
    }
    if args.output == Format::Table {
        return Ok(put(&format!("{}\n{refusals}", table(answers, slices)))?);
    }
    let written = claims(answers, WireForm::from_profile(args.rules.profile))?;
    written.notes.iter().map(String::as_str).chain(refusals.lines()).for_each(|line| say(&line));
    if args.output == Format::Json {
        return Ok(put(&as_json(&list(&written.claims))?)?);
    }
    Ok(put(&as_yaml(&written.claims)?)?)
}
