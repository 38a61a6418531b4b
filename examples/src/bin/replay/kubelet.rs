//! Operations of the kubelet's side: `alloc.aggregate_skip`, `alloc.required_features`, `alloc.match_features` and
//! `alloc.kubelet`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use dra_alloc::GateSet;
use dra_alloc::declared_features::DeclaredFeature;
use dra_alloc::kubelet::{ClaimCache, ClaimRef, Plan, Prepare, PreparedDevice, Skipped, Unprepare};
use dra_alloc::skip::SkipSet;
use dra_attrs::{Component, Profile, Version};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::alloc::{carrier, carriers};
use super::operation::Operation;
use super::refusal::{Refusal, object, read};
use super::steps::{StepOperation, StepWriter};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct AggregateInput {
    claim: Value,
}

pub(super) fn aggregate_skip(input: Value) -> Result<Operation, Refusal> {
    let input: AggregateInput = read(input)?;
    let claim: ResourceClaim = carrier("claim", input.claim)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
        let drivers = stopwatch.run(|| allocation.map(SkipSet::by_driver).unwrap_or_default());
        let drivers = drivers.into_iter().map(|(driver, skips)| {
            (driver.to_owned(), json!({"prepare": skips.prepare, "unprepare": skips.unprepare}))
        });
        Ok(json!({"drivers": drivers.collect::<serde_json::Map<_, _>>()}))
    }))
}

#[derive(Deserialize)]
struct RequiredInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    pod: Value,
    #[serde(default)]
    claims: Vec<Value>,
    version: Option<String>,
    max_version: Option<String>,
}

pub(super) fn required_features(input: Value) -> Result<Operation, Refusal> {
    let input: RequiredInput = read(input)?;
    let pod: Pod = object("pod", input.pod)?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let target = version("version", input.version.as_deref().unwrap_or("1.37.0"))?;
    let feature = DeclaredFeature::new(input.profile);
    let feature = match &input.max_version {
        Some(text) => feature.with_max_version(version("max_version", text)?),
        None => feature,
    };
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let required = stopwatch.run(|| feature.required_by(&pod, &claims, &target));
        Ok(json!({"features": required.into_iter().collect::<Vec<_>>()}))
    }))
}

/// Parses a version of Kubernetes, with or without `v`.
fn version(field: &str, text: &str) -> Result<Version, Refusal> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.parse().map_err(|error: dra_attrs::VersionError| {
        Refusal::field(field, format!("{error}; a version has three numbers, such as 1.37.0"))
    })
}

#[derive(Deserialize)]
struct MatchInput {
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    declared: Vec<String>,
}

pub(super) fn match_features(input: Value) -> Result<Operation, Refusal> {
    let input: MatchInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let required: Vec<&str> = input.required.iter().map(String::as_str).collect();
        let missing = stopwatch.run(|| DeclaredFeature::missing(&required, &input.declared));
        Ok(json!({"match": missing.is_empty(), "missing": missing}))
    }))
}

#[derive(Deserialize)]
struct KubeletInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Prepare(PrepareStep),
    PrepareResponse(Response<PreparedClaim>),
    FinishPrepare {},
    Unprepare(UnprepareStep),
    UnprepareResponse(Response<UnpreparedClaim>),
    FinishUnprepare {},
    Reconcile(ReconcileStep),
    ContainerDevices(ContainerStep),
    Restart(RestartStep),
}

#[derive(Deserialize)]
struct PrepareStep {
    pod: Pod,
    #[serde(default)]
    claims: Vec<Value>,
    /// Parts of `claims` that were read.
    #[serde(skip)]
    read_claims: Vec<ResourceClaim>,
    #[serde(default, alias = "features", deserialize_with = "crate::settings::gates")]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    registered: BTreeSet<String>,
}

#[derive(Deserialize)]
struct UnprepareStep {
    pod: Pod,
    #[serde(default, alias = "features", deserialize_with = "crate::settings::gates")]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    registered: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Response<T> {
    driver: String,
    claims: Option<BTreeMap<String, T>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct PreparedClaim {
    #[serde(default)]
    devices: Vec<DeviceInput>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct DeviceInput {
    #[serde(default)]
    pool: String,
    #[serde(default)]
    device: String,
    #[serde(default)]
    requests: Vec<String>,
    #[serde(default)]
    cdi_ids: Vec<String>,
    share_id: Option<String>,
}

#[derive(Deserialize)]
struct UnpreparedClaim {
    error: Option<String>,
}

#[derive(Deserialize)]
struct ReconcileStep {
    #[serde(default)]
    active_pods: BTreeSet<String>,
    registered: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct ContainerStep {
    pod: Pod,
    container: String,
}

#[derive(Deserialize)]
struct RestartStep {
    checkpoint: Option<String>,
}

/// Output of a step.
#[derive(Default, Serialize)]
struct Shown {
    calls: BTreeMap<String, Vec<String>>,
    skipped: Vec<SkippedCall>,
    checkpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<String>>,
    error: Option<String>,
}

/// Skipped call: claim UID, driver, operation.
#[derive(Serialize)]
struct SkippedCall(String, String, dra_alloc::kubelet::Operation);

pub(super) fn kubelet(input: Value) -> Result<StepOperation, Refusal> {
    let mut input: KubeletInput = read(input)?;
    for (index, step) in input.steps.iter_mut().enumerate() {
        step.finish_reading().map_err(|refusal| refusal.below(&format!("steps[{index}]")))?;
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch, steps: &mut StepWriter<'_>| {
        let mut kubelet = Kubelet::new(input.profile);
        input.steps.iter().try_for_each(|step| {
            let shown = stopwatch.run(|| kubelet.step(step));
            steps.write(&shown)
        })
    }))
}

impl Step {
    /// Reads what the types leave open.
    fn finish_reading(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Prepare(step) => {
                step.read_claims = carriers("prepare.claims", step.claims.drain(..))?;
                Ok(())
            }
            Self::ContainerDevices(step) => step.container().map(|_| ()),
            _ => Ok(()),
        }
    }
}

impl ContainerStep {
    fn container(&self) -> Result<&Container, Refusal> {
        container(&self.pod, &self.container).ok_or_else(|| {
            let reason = format!("the pod has no container {:?}", self.container);
            Refusal::field("container_devices.container", reason)
        })
    }
}

/// Kubelet that runs through its steps.
struct Kubelet {
    profile: Profile,
    settings: Component,
    /// Remembered claims; `None` if a checkpoint could not be read.
    cache: Option<ClaimCache>,
    preparing: Option<Plan<Prepare>>,
    unpreparing: Vec<Plan<Unprepare>>,
    /// Plugins that the last step named.
    registered: BTreeSet<String>,
    /// Text of the checkpoint on disk.
    file: String,
}

impl Kubelet {
    fn new(profile: Profile) -> Self {
        let cache = ClaimCache::default();
        let file = cache.to_checkpoint(profile);
        Self {
            profile,
            settings: settings(profile, &BTreeMap::new()),
            cache: Some(cache),
            preparing: None,
            unpreparing: Vec::new(),
            registered: BTreeSet::new(),
            file,
        }
    }

    fn step(&mut self, step: &Step) -> Shown {
        if let Step::Restart(step) = step {
            return self.restart(step);
        }
        let Some(mut cache) = self.cache.take() else {
            return failed("the kubelet has not started: its checkpoint could not be read");
        };
        let shown = self.run(step, &mut cache);
        let checkpoint = cache.take_checkpoint(self.profile);
        if let Some(text) = &checkpoint {
            self.file.clone_from(text);
        }
        self.cache = Some(cache);
        Shown { checkpoint, ..shown }
    }

    fn run(&mut self, step: &Step, cache: &mut ClaimCache) -> Shown {
        match step {
            Step::Prepare(step) => self.prepare(step, cache),
            Step::PrepareResponse(response) => self.prepare_response(response, cache),
            Step::FinishPrepare {} => self.finish_prepare(cache),
            Step::Unprepare(step) => self.unprepare(step, cache),
            Step::UnprepareResponse(response) => self.unprepare_response(response, cache),
            Step::FinishUnprepare {} => self.finish_unprepare(cache),
            Step::Reconcile(step) => self.reconcile(step, cache),
            Step::ContainerDevices(step) => self.container_devices(step, cache),
            Step::Restart(_) => Shown::default(),
        }
    }

    fn set_up(&mut self, gates: &BTreeMap<String, bool>, registered: &BTreeSet<String>) {
        self.settings = settings(self.profile, gates);
        self.registered.clone_from(registered);
    }

    fn prepare(&mut self, step: &PrepareStep, cache: &mut ClaimCache) -> Shown {
        self.set_up(&step.gates, &step.registered);
        self.preparing = None;
        let registered = |driver: &str| self.registered.contains(driver);
        match cache.plan_prepare(&step.pod, &step.read_claims, registered, self.settings) {
            Ok(plan) => {
                let shown = planned(plan.calls(), plan.skipped());
                self.preparing = Some(plan);
                shown
            }
            Err(error) => failed(error),
        }
    }

    fn prepare_response(&mut self, response: &Response<PreparedClaim>, cache: &mut ClaimCache) -> Shown {
        let Some(plan) = &mut self.preparing else { return failed("no prepare is under way") };
        let outcome = response.outcome(|claim| {
            success(claim.error.as_deref()).map(|()| claim.devices.iter().map(DeviceInput::prepared).collect())
        });
        done(cache.apply_prepare(plan, &response.driver, outcome))
    }

    /// Keeps a plan that can't be finished yet: its driver may still send a good answer.
    fn finish_prepare(&mut self, cache: &mut ClaimCache) -> Shown {
        let Some(plan) = self.preparing.take() else { return failed("no prepare is under way") };
        let end = cache.finish_prepare(plan.clone());
        self.preparing = Some(plan).filter(|_| end.is_err());
        done(end)
    }

    fn unprepare(&mut self, step: &UnprepareStep, cache: &mut ClaimCache) -> Shown {
        self.set_up(&step.gates, &step.registered);
        self.unpreparing.clear();
        match cache.plan_unprepare(&step.pod, |driver| self.registered.contains(driver), self.settings) {
            Ok(plan) => {
                let shown = planned(plan.calls(), plan.skipped());
                self.unpreparing.push(plan);
                shown
            }
            Err(error) => failed(error),
        }
    }

    /// Returns the plans of all orphaned pods together: calls by driver, and the first error.
    fn reconcile(&mut self, step: &ReconcileStep, cache: &mut ClaimCache) -> Shown {
        if let Some(registered) = &step.registered {
            self.registered.clone_from(registered);
        }
        self.unpreparing.clear();
        let mut shown = Shown::default();
        let registered = |driver: &str| self.registered.contains(driver);
        for (_, plan) in cache.plan_orphans(&step.active_pods, registered, self.settings) {
            match plan {
                Ok(plan) => {
                    let of_pod = planned(plan.calls(), plan.skipped());
                    for (driver, claims) in of_pod.calls {
                        shown.calls.entry(driver).or_default().extend(claims);
                    }
                    shown.skipped.extend(of_pod.skipped);
                    self.unpreparing.push(plan);
                }
                Err(error) => drop(shown.error.get_or_insert_with(|| error.to_string())),
            }
        }
        shown
    }

    /// Passes a response to the plans whose claims it names, or, if it names none of them, to all plans that call the
    /// driver. The first error is shown; an error of one pod does not affect others.
    fn unprepare_response(&mut self, response: &Response<UnpreparedClaim>, cache: &mut ClaimCache) -> Shown {
        let mut outcome: Result<BTreeMap<_, _>, _> = response.outcome(|claim| success(claim.error.as_deref()));
        let driver = &response.driver;
        let is_named = |uid: &String| response.claims.as_ref().is_some_and(|answers| answers.contains_key(uid));
        let mut concerned: Vec<_> =
            self.unpreparing.iter_mut().filter(|plan| plan.calls().contains_key(driver)).collect();
        let names_some = |plan: &Plan<Unprepare>| uids(&plan.calls()[driver]).iter().any(is_named);
        if concerned.iter().any(|plan| names_some(plan)) {
            concerned.retain(|plan| names_some(plan));
        }
        let Some(last) = concerned.len().checked_sub(1) else {
            return failed("no unprepare of the driver is under way");
        };
        let mut error = None;
        for (index, plan) in concerned.into_iter().enumerate() {
            // Each claim is in one plan. What nobody has asked about is for the last one.
            let part = match &mut outcome {
                Ok(answers) if index < last => {
                    let mine = uids(&plan.calls()[driver]).into_iter();
                    Ok(mine.filter_map(|uid| answers.remove_entry(&uid)).collect())
                }
                Ok(answers) => Ok(std::mem::take(answers).into_iter().collect()),
                Err(error) => Err(error.clone()),
            };
            if let Err(failure) = cache.apply_unprepare(plan, driver, part) {
                error.get_or_insert(failure);
            }
        }
        error.map_or_else(Shown::default, failed)
    }

    fn finish_unprepare(&mut self, cache: &mut ClaimCache) -> Shown {
        if self.unpreparing.is_empty() {
            return failed("no unprepare is under way");
        }
        let mut error = None;
        self.unpreparing.retain(|plan| match cache.finish_unprepare(plan.clone()) {
            Ok(()) => false,
            Err(failure) => {
                error.get_or_insert(failure);
                true
            }
        });
        error.map_or_else(Shown::default, failed)
    }

    fn container_devices(&self, step: &ContainerStep, cache: &ClaimCache) -> Shown {
        let container = match step.container() {
            Ok(container) => container,
            Err(refusal) => return failed(refusal.message),
        };
        match cache.container_devices(&step.pod, container, self.settings) {
            Ok(ids) => Shown { devices: Some(ids.into_iter().map(str::to_owned).collect()), ..Shown::default() },
            Err(error) => failed(error),
        }
    }

    fn restart(&mut self, step: &RestartStep) -> Shown {
        self.preparing = None;
        self.unpreparing.clear();
        let text = step.checkpoint.as_ref().unwrap_or(&self.file);
        match ClaimCache::from_checkpoint(text.as_bytes()) {
            Ok(cache) => {
                self.file = text.clone();
                self.cache = Some(cache);
                Shown::default()
            }
            Err(error) => {
                self.cache = None;
                failed(error)
            }
        }
    }
}

/// Returns the kubelet's options; gates that are not named are off.
fn settings(profile: Profile, gates: &BTreeMap<String, bool>) -> Component {
    Component::new(profile, GateSet::from_names(profile, |gate| Some(gates.get(gate).copied().unwrap_or(false))))
}

impl<T> Response<T> {
    fn outcome<A, C: FromIterator<(String, Result<A, String>)>>(
        &self,
        answer: impl Fn(&T) -> Result<A, String>,
    ) -> Result<C, String> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(self.claims.iter().flatten().map(|(uid, claim)| (uid.clone(), answer(claim))).collect()),
        }
    }
}

impl DeviceInput {
    fn prepared(&self) -> PreparedDevice {
        PreparedDevice {
            pool: self.pool.clone(),
            device: self.device.clone(),
            share_id: self.share_id.clone(),
            requests: self.requests.clone(),
            cdi_ids: self.cdi_ids.clone(),
        }
    }
}

/// Treats an empty error text as success.
fn success(error: Option<&str>) -> Result<(), String> {
    error.filter(|error| !error.is_empty()).map_or(Ok(()), |error| Err(error.to_owned()))
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let inits = spec.init_containers.iter().flatten();
    inits.chain(&spec.containers).find(|container| container.name == name)
}

fn uids(claims: &[ClaimRef]) -> Vec<String> {
    claims.iter().map(|claim| claim.uid.clone()).collect()
}

fn planned(calls: &BTreeMap<String, Vec<ClaimRef>>, skipped: &[Skipped]) -> Shown {
    let skip = |skip: &Skipped| SkippedCall(skip.claim_uid.clone(), skip.driver.clone(), skip.operation);
    Shown {
        calls: calls.iter().map(|(driver, claims)| (driver.clone(), uids(claims))).collect(),
        skipped: skipped.iter().map(skip).collect(),
        ..Shown::default()
    }
}

fn done<E: Display>(result: Result<(), E>) -> Shown {
    Shown { error: result.err().map(|error| error.to_string()), ..Shown::default() }
}

fn failed(error: impl Display) -> Shown {
    Shown { error: Some(error.to_string()), ..Shown::default() }
}
