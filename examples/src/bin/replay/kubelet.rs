//! The operation `alloc.kubelet`: a kubelet that prepares and unprepares claims in steps.

mod shown;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::GateSet;
use dra_alloc::kubelet::{ClaimCache, Plan, Prepare, Unprepare};
use dra_attrs::{Component, Profile};
use serde::Deserialize;
use serde_json::Value;

use self::shown::{Shown, done, failed, planned, uids};
use self::step::{
    ContainerStep, DeviceInput, PrepareStep, PreparedClaim, ReconcileStep, Response, RestartStep, Step, UnprepareStep,
    UnpreparedClaim, success,
};
use super::refusal::{Refusal, read};
use super::steps::{StepOperation, StepWriter};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct KubeletInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default)]
    steps: Vec<Step>,
}

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
