//! Example kubelet for resource claims. With a command it works on manifests, a state file, and drivers that listen on
//! unix sockets. Of workloads and templates in the manifests it makes the pods and claims, and allocates the claims as a plan
//! does. Without a command it runs a demonstration with a driver of its own. Calls and drivers need the cargo
//! feature `grpc`; without it the program says so when it comes to a call.
//!
//! With `--live` it is the agent of a virtual node of a cluster.
//!
//! Two terminals:
//!
//! ```text
//! kubelet --fake-driver gpu.sock --driver gpu.example.com
//! kubelet --plugin gpu.example.com=gpu.sock prepare train examples/data/kubelet/pods.yaml
//! ```

mod agent;
mod args;
mod diagnose;
mod error;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "no_grpc.rs"]
mod grpc;
mod line;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod made;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use agent::{Agent, AgentError, Done};
use args::{Args, Command, PodArgs};
use dra_alloc::kubelet::ClaimCache;
use dra_attrs::{Component, Version};
use dra_live::state_file::StateFile;
use error::KubeletError;
use examples::feature_gates::{KUBELET_GATES, feature_gates};
use examples::manifest::{Manifests, name_of};
use examples::output::{LineForm, OutputError, one_line, program, put, put_line, say};
use examples::workload::WorkloadArgs;
use grpc::{block_on, listen, registered, serve};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use line::Line;
use made::{USED, active, ignored, made};
use story::tell;

/// Version of the kubelet, against which features that end with a version are compared.
const VERSION: &str = "1.37.0";

fn main() -> ExitCode {
    program(|args: &Args| {
        let outcome = block_on(run(args)).map_err(KubeletError::Runtime).flatten();
        outcome.map(|()| ExitCode::SUCCESS)
    })
}

async fn run(args: &Args) -> Result<(), KubeletError> {
    if let Some(socket) = &args.fake_driver {
        let listener = listen(socket)?;
        print(&format!("{} serves {}", args.driver, socket.display()))?;
        let on_call = Box::new(|method: &'static str, claims: &[String]| {
            // A closed output is no reason to reject claims.
            let _ = print(&format!("{method}({})", claims.join(", ")));
        });
        return Ok(serve(listener, &args.driver, on_call).await?);
    }
    let settings =
        Component::new(args.rules.profile, feature_gates(&args.feature_gates, args.rules.profile, &KUBELET_GATES)?);
    if args.server.live {
        return Ok(live::run(args, settings, args.plugins()?).await?);
    }
    let Some(command) = &args.command else {
        return Ok(print(tell(args.rules.profile).await?.trim_end())?);
    };
    let file = StateFile::new(args.state.clone());
    let mut plugins = args.plugins()?;
    if let Some(registry) = &args.registry {
        let (registered, refused) = registered(registry).await;
        plugins.extend(registered);
        for reason in refused {
            say(&format_args!("kubelet: {reason}"));
        }
    }
    let start = |file| Agent::start(file, settings, plugins, args.call_timeout());
    let read = |files: &[String], workloads: &WorkloadArgs| {
        read(files, workloads.of_release(args.rules.profile), args.ignore_unknown_fields)
    };
    match command {
        Command::Prepare(pod) => {
            let version = VERSION.parse()?;
            let agent = start(file)?;
            let manifests = made(read(&pod.files, &pod.workloads)?, settings, &pod.pod)?;
            let pod = find(&manifests, &pod.pod)?;
            let outcome = prepare(&agent, pod, &manifests, (!args.no_admission).then_some(&version)).await;
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Diagnose(question) => {
            let manifests = read(&question.files, &WorkloadArgs::default())?;
            ignored(&manifests, &USED);
            Ok(print(&diagnose::diagnose(question, &manifests, args.rules.profile)?)?)
        }
        Command::Unprepare(PodArgs { pod, files, workloads }) => {
            let (agent, manifests) = (start(file)?, made(read(files, workloads)?, settings, pod)?);
            let outcome = agent
                .unprepare(find(&manifests, pod)?)
                .await
                .map_err(KubeletError::from)
                .and_then(|done| Ok(show(&done)?));
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Reconcile { files, none_active, workloads } => {
            let active = if *none_active {
                BTreeSet::new()
            } else {
                let manifests = read(files, workloads)?;
                // UIDs that are made up tell nothing of a cluster's pods: without those, nothing is unprepared.
                active_pods(files, &manifests)?;
                active_pods(files, &active(manifests, settings))?
            };
            reconcile(&start(file)?, &active).await
        }
        Command::Show => match Agent::remembered(&file)? {
            Some(cache) => Ok(print(&remembered(&cache)?)?),
            None => Err(AgentError::NoCheckpoint(args.state.clone()).into()),
        },
    }
}

/// Prints the metrics, if they are asked for.
fn metrics(agent: &Agent, wanted: bool) -> Result<(), OutputError> {
    let lines = || [agent.metrics(), agent.operations()].concat();
    if wanted { print(&lines().join("\n")) } else { Ok(()) }
}

/// Prepares the claims of a pod. With a version, checks first that the node declares what the pod requires.
async fn prepare(
    agent: &Agent,
    pod: &Pod,
    manifests: &Manifests,
    admission: Option<&Version>,
) -> Result<(), KubeletError> {
    if let Some(version) = admission {
        agent.admit(pod, &manifests.claims, version)?;
    }
    show(&agent.prepare(pod, &manifests.claims).await?)?;
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let ids = agent.container_devices(pod, container)?.join(" ");
        print(format!("container {}: CDI devices: {}", container.name, one_line(&ids)).trim_end())?;
    }
    Ok(())
}

/// Returns the claims of a checkpoint, by name.
fn remembered(cache: &ClaimCache) -> Result<String, KubeletError> {
    let claims = cache.claims().iter().map(|(key, info)| (key.to_string(), info));
    Ok(serde_json::to_string_pretty(&claims.collect::<BTreeMap<_, _>>())?)
}

/// Returns the UIDs of the pods in manifests. Whatever is not among them loses its devices, so that no pod may be left out.
fn active_pods(files: &[String], manifests: &Manifests) -> Result<BTreeSet<String>, KubeletError> {
    if manifests.pods.is_empty() {
        return Err(KubeletError::NoActivePod(files.join(", ")));
    }
    manifests.pods.iter().map(|pod| uid("Pod", &pod.metadata)).collect()
}

/// Returns the UID of an object. Objects without one would be taken for one another.
fn uid(kind: &str, metadata: &ObjectMeta) -> Result<String, KubeletError> {
    let uid = metadata.uid.clone().filter(|uid| !uid.is_empty());
    uid.ok_or_else(|| KubeletError::NoUid(format!("{kind} {}", name_of(metadata))))
}

async fn reconcile(agent: &Agent, active: &BTreeSet<String>) -> Result<(), KubeletError> {
    let mut stayed = 0_usize;
    for (pod, done) in agent.reconcile(active).await? {
        match done {
            Ok(done) => {
                print(&format!("pod {pod}:"))?;
                show(&done)?;
            }
            Err(error) => {
                stayed = stayed.saturating_add(1);
                print(&format!("pod {pod}: {error}"))?;
            }
        }
    }
    if stayed == 0 { Ok(()) } else { Err(KubeletError::Stayed(stayed)) }
}

/// Reads manifests, all of which must be readable: a pod or claim that is passed over would lose its devices.
fn read(files: &[String], mut manifests: Manifests, ignore_unknown_fields: bool) -> Result<Manifests, KubeletError> {
    for file in files {
        manifests.read_argument(file);
    }
    if let Some(problem) = manifests.problems.first() {
        return Err(KubeletError::Manifest(problem.to_string()));
    }
    if let Some(unknown) = manifests.notes.iter().find(|note| note.is_unknown_field && !ignore_unknown_fields) {
        return Err(KubeletError::UnknownField(unknown.to_string()));
    }
    manifests.notes.iter().for_each(say);
    for claim in &manifests.claims {
        uid("ResourceClaim", &claim.metadata)?;
    }
    Ok(manifests)
}

/// Returns the pod of a name.
fn find<'a>(manifests: &'a Manifests, name: &str) -> Result<&'a Pod, KubeletError> {
    let full = if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
    let pod = manifests.pods.iter().find(|pod| [name, &full].contains(&name_of(&pod.metadata).as_str()));
    let pod = pod.ok_or_else(|| KubeletError::NoPod(name.to_owned()))?;
    uid("Pod", &pod.metadata).map(|_| pod)
}

fn show(done: &Done) -> Result<(), OutputError> {
    Line::of_calls(done).try_for_each(|line| put_line(LineForm::Text, &line))
}

fn print(text: &str) -> Result<(), OutputError> {
    put(&format!("{text}\n"))
}
