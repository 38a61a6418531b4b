//! Lint: what an API server accepts, and what is hardly meant. Each finding has its reason and the way out.
//!
//! Selectors, constraints and taint rules are tried on the devices of the manifests.

use std::collections::BTreeMap;
use std::fmt;

use dra_alloc::Profile;
use dra_alloc::selector::{Options, Selector, SelectorInput, TermSurvey};
use k8s_openapi::api::resource::v1::{
    Device, DeviceClaim, DeviceClass, DeviceConstraint, DeviceRequest, DeviceSelector, DeviceTaint, DeviceTaintRule,
};
use serde::Serialize;

use crate::manifest::{Manifests, name_of};
use crate::plan::Devices;

/// Largest number of devices that a finding names.
const MOST_NAMES: usize = 5;

/// Effect of a taint that does nothing.
const NO_EFFECT: &str = "None";

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Kind and name of the object.
    pub object: String,
    /// Reason.
    pub reason: String,
    /// The way out.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: lint: {}; {}", self.object, self.reason, self.advice)
    }
}

/// Looks for what is hardly meant. Without slices, only what needs no devices is found.
///
/// ```
/// use dra_alloc::Profile;
/// use examples::lint::lint;
/// use examples::manifest::Manifests;
/// let mut manifests = Manifests::default();
/// manifests.read("c.yaml", "{kind: DeviceClass, metadata: {name: all}, spec: {selectors: [{cel: {expression: 'true'}}]}}");
/// let finding = lint(&manifests, Profile::V1_37).remove(0).to_string();
/// assert_eq!(finding, "DeviceClass all: lint: selectors[0] is constant: it reads nothing of a device; leave it out, or read the device");
/// ```
#[must_use]
pub fn lint(manifests: &Manifests, profile: Profile) -> Vec<Finding> {
    let devices = Devices::new(&manifests.slices);
    let mut linter = Linter { devices, classes: &manifests.classes, options: options(profile), found: Vec::new() };
    for class in &manifests.classes {
        linter.class(class);
    }
    for claim in &manifests.claims {
        let object = format!("ResourceClaim {}", name_of(&claim.metadata));
        linter.claim(&object, claim.spec.as_ref().and_then(|spec| spec.devices.as_ref()));
    }
    for template in &manifests.claim_templates {
        let object = format!("ResourceClaimTemplate {}", name_of(&template.metadata));
        linter.claim(&object, template.spec.as_ref().and_then(|spec| spec.spec.as_ref()?.devices.as_ref()));
    }
    for rule in &manifests.taint_rules {
        linter.rule(rule);
    }
    for slice in &manifests.slices {
        let object = format!("ResourceSlice {}", name_of(&slice.metadata));
        for device in slice.spec.devices.iter().flatten() {
            for taint in device.taints.iter().flatten() {
                linter.taint(&object, &format!("the taint {} of device {}", taint.key, device.name), taint);
            }
        }
    }
    linter.found
}

fn options(profile: Profile) -> Options {
    Options::stored().with_profile(profile)
}

struct Linter<'m> {
    devices: Devices<'m>,
    classes: &'m [DeviceClass],
    options: Options,
    found: Vec<Finding>,
}

impl<'m> Linter<'m> {
    fn add(&mut self, object: &str, reason: String, advice: impl Into<String>) {
        self.found.push(Finding { object: object.to_owned(), reason, advice: advice.into() });
    }

    fn compiled(&self, selectors: &[DeviceSelector]) -> Vec<Selector> {
        let texts = selectors.iter().filter_map(|selector| selector.cel.as_ref());
        texts.filter_map(|cel| Selector::compile(&cel.expression, &self.options).ok()).collect()
    }

    fn class(&mut self, class: &DeviceClass) {
        let object = format!("DeviceClass {}", name_of(&class.metadata));
        let selectors = self.compiled(selectors_of(class));
        let all = self.devices.clone();
        for (index, selector) in selectors.iter().enumerate() {
            self.selector(&object, &format!("selectors[{index}]"), selector, &all);
        }
        if !all.is_empty() && !selectors.is_empty() && all.admitted(&selectors).is_empty() {
            let reason = format!("no device of {} is of the class", all.len());
            self.add(&object, reason, "kubectl dra attributes lists the values that there are");
        }
    }

    /// Looks at one selector of a class or request, on the devices that it is evaluated on.
    fn selector(&mut self, object: &str, place: &str, selector: &Selector, devices: &Devices<'m>) {
        if selector.is_constant() {
            let reason = format!("{place} is constant: it reads nothing of a device");
            return self.add(object, reason, "leave it out, or read the device");
        }
        if devices.is_empty() {
            return;
        }
        let survey = selector.survey(devices.inputs());
        if let Some((_, error)) = &survey.first_error {
            let error = error.to_string();
            let error = error.split(". ").next().unwrap_or_default();
            let reason = format!(
                "{place} fails on {} of {} devices ({error}): {}; a scheduler that reaches one stops",
                survey.errors,
                devices.len(),
                failing(selector, devices)
            );
            return self.add(object, reason, guard_of(selector, &survey));
        }
        if survey.holds == devices.len() && devices.len() > 1 && !selector.depends_only_on_driver() {
            let reason = format!("{place} is true on all {} devices that it is asked about", devices.len());
            self.add(object, reason, "it selects nothing: leave it out if that is meant");
        }
    }

    /// Looks at a selector of a request that no device of its class passes.
    fn admits_none(&mut self, object: &str, place: &str, selector: &Selector, devices: &Devices<'m>) {
        let survey = selector.survey(devices.inputs());
        if devices.is_empty() || selector.is_constant() || survey.holds > 0 || survey.errors > 0 {
            return;
        }
        let reason = format!("{place} is true on none of the {} devices of its class", devices.len());
        self.add(object, reason, "kubectl dra attributes lists the values that there are");
    }

    fn claim(&mut self, object: &str, claim: Option<&DeviceClaim>) {
        let Some(claim) = claim else { return };
        let mut offered: BTreeMap<String, (Devices<'m>, usize)> = BTreeMap::new();
        for (index, request) in claim.requests.iter().flatten().enumerate() {
            for asked in Asked::of(index, request) {
                let Some(class) = self.class_of(asked.class) else { continue };
                let of_class = self.compiled(selectors_of(class));
                let within = self.devices.admitted(&of_class);
                let own = self.compiled(asked.selectors);
                for (number, selector) in own.iter().enumerate() {
                    let place = format!("{}.selectors[{number}]", asked.place);
                    self.selector(object, &place, selector, &within);
                    self.admits_none(object, &place, selector, &within);
                }
                offered.insert(asked.name, (within.admitted(&own), asked.count));
            }
        }
        for (index, constraint) in claim.constraints.iter().flatten().enumerate() {
            self.constraint(object, index, constraint, &offered);
        }
    }

    fn class_of(&self, name: &str) -> Option<&'m DeviceClass> {
        self.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))
    }

    /// Looks at a constraint that no two of the devices which its requests could have can meet.
    fn constraint(
        &mut self,
        object: &str,
        index: usize,
        constraint: &DeviceConstraint,
        offered: &BTreeMap<String, (Devices<'m>, usize)>,
    ) {
        let listed = constraint.requests.as_deref().unwrap_or_default();
        let is_meant = |name: &str| {
            listed.is_empty() || listed.iter().any(|of| of == name || name.split('/').next() == Some(of.as_str()))
        };
        let named: Vec<(&String, &(Devices<'m>, usize))> = offered.iter().filter(|(name, _)| is_meant(name)).collect();
        let meant: Vec<&(Devices<'m>, usize)> = named.iter().map(|(_, offered)| *offered).collect();
        let wanted: usize = meant.iter().map(|(_, count)| count).sum();
        let field = |attribute: &Option<String>| attribute.clone().filter(|attribute| !attribute.is_empty());
        let (attribute, is_match) = match (field(&constraint.match_attribute), field(&constraint.distinct_attribute)) {
            (Some(attribute), _) => (attribute, true),
            (None, Some(attribute)) => (attribute, false),
            (None, None) => return,
        };
        let mut by_value: BTreeMap<String, usize> = BTreeMap::new();
        let mut devices = 0_usize;
        for input in meant.iter().flat_map(|(devices, _)| devices.inputs()) {
            devices = devices.saturating_add(1);
            let uses = if input.device.allow_multiple_allocations == Some(true) { 2 } else { 1 };
            for value in values(input.driver, input.device, &attribute) {
                *by_value.entry(value).or_default() += uses;
            }
        }
        let lacks = |devices: &Devices<'m>| {
            !devices.is_empty()
                && devices.inputs().all(|input| values(input.driver, input.device, &attribute).is_empty())
        };
        let field = if is_match { "matchAttribute" } else { "distinctAttribute" };
        if let Some((name, (devices, _))) = named.iter().find(|(_, (devices, count))| *count > 0 && lacks(devices)) {
            let reason = format!(
                "constraints[{index}].{field} {attribute} can't be met: none of the {} devices for request {name} has the \
                 attribute",
                devices.len()
            );
            return self.add(object, reason, "name the other requests in the constraint, or another attribute");
        }
        if wanted < 2 || devices < 2 {
            return;
        }
        let most = by_value.values().max().copied().unwrap_or_default();
        let (is_met, why) = if is_match {
            (most >= 2, "no two of the devices share a value")
        } else {
            (by_value.len() >= 2, "all of the devices have the same value")
        };
        if is_met {
            return;
        }
        let reason = format!("constraints[{index}].{field} {attribute} can't be met: {why} ({devices} devices)");
        self.add(object, reason, "kubectl dra attributes lists the values that there are");
    }

    fn rule(&mut self, rule: &DeviceTaintRule) {
        let object = format!("DeviceTaintRule {}", name_of(&rule.metadata));
        self.taint(&object, "its taint", &rule.spec.taint);
        let selector = rule.spec.device_selector.as_ref();
        let wants = |of: Option<&String>, own: &str| of.is_none_or(|of| of == own);
        let selected = self.devices.with_pools().filter(|(driver, pool, device)| {
            wants(selector.and_then(|it| it.driver.as_ref()), driver)
                && wants(selector.and_then(|it| it.pool.as_ref()), pool)
                && wants(selector.and_then(|it| it.device.as_ref()), &device.name)
        });
        let (selected, all) = (selected.count(), self.devices.len());
        match selected {
            _ if all == 0 => {}
            0 => self.add(
                &object,
                format!("it selects none of {all} devices"),
                "compare driver, pool and device with kubectl get resourceslices",
            ),
            selected if selected == all && all > 1 => {
                self.add(&object, format!("it selects all {all} devices"), "name a driver, pool or device");
            }
            _ => {}
        }
    }

    fn taint(&mut self, object: &str, which: &str, taint: &DeviceTaint) {
        if taint.effect == NO_EFFECT {
            let reason = format!("{which} has the effect None: it keeps no pod away and evicts none");
            self.add(object, reason, "write NoSchedule or NoExecute if that is not meant");
        }
    }
}

fn selectors_of(class: &DeviceClass) -> &[DeviceSelector] {
    class.spec.as_ref().and_then(|spec| spec.selectors.as_deref()).unwrap_or_default()
}

/// Returns the first devices on which a selector fails, by pool and name, and the number of others.
fn failing(selector: &Selector, devices: &Devices<'_>) -> String {
    let fails = devices
        .with_pools()
        .filter(|(driver, _, device)| selector.matches(SelectorInput::new(driver, device)).is_err());
    let mut names: Vec<String> = fails.map(|(_, pool, device)| format!("{pool}/{}", device.name)).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

/// Returns how to write the term that fails so that it does not.
fn guard_of(selector: &Selector, survey: &TermSurvey) -> String {
    let missing = survey.read.iter().find(|read| read.missing > 0);
    match missing.and_then(|read| read.name.split_once('/')) {
        Some((domain, id)) => {
            let is_attribute = |(of, name): &(String, String)| (of.as_str(), name.as_str()) == (domain, id);
            let attributes = selector.attributes_read().unwrap_or_default();
            let map = if attributes.iter().any(is_attribute) { "attributes" } else { "capacity" };
            format!("guard it, as in \"{id}\" in device.{map}[\"{domain}\"] && …, or read .?{id}.orValue(…)")
        }
        None => "guard it with has() or in, or read with .? and orValue(…)".to_owned(),
    }
}

/// A request, or one of its alternatives.
struct Asked<'c> {
    /// Name, as constraints have it.
    name: String,
    place: String,
    class: &'c str,
    selectors: &'c [DeviceSelector],
    count: usize,
}

impl<'c> Asked<'c> {
    fn of(index: usize, request: &'c DeviceRequest) -> Vec<Self> {
        let count = |mode: Option<&str>, count: Option<i64>| match mode {
            Some("All") => usize::MAX / 64,
            _ => usize::try_from(count.unwrap_or(1)).unwrap_or_default(),
        };
        let exactly = request.exactly.iter().map(|it| Asked {
            name: request.name.clone(),
            place: format!("requests[{index}]"),
            class: &it.device_class_name,
            selectors: it.selectors.as_deref().unwrap_or_default(),
            count: count(it.allocation_mode.as_deref(), it.count),
        });
        let listed = request.first_available.iter().flatten().enumerate().map(|(number, it)| Asked {
            name: format!("{}/{}", request.name, it.name),
            place: format!("requests[{index}].firstAvailable[{number}]"),
            class: &it.device_class_name,
            selectors: it.selectors.as_deref().unwrap_or_default(),
            count: count(it.allocation_mode.as_deref(), it.count),
        });
        exactly.chain(listed).collect()
    }
}

/// Returns the values of an attribute by its full name: several of a list.
fn values(driver: &str, device: &Device, attribute: &str) -> Vec<String> {
    let own = attribute.strip_prefix(driver).and_then(|id| id.strip_prefix('/'));
    let map = device.attributes.as_ref();
    let found = map.and_then(|map| map.get(attribute).or_else(|| map.get(own?)));
    let Some(found) = found else { return Vec::new() };
    let mut values: Vec<String> = Vec::new();
    values.extend(found.bool.iter().chain(found.bools.iter().flatten()).map(|value| format!("bool {value}")));
    values.extend(found.int.iter().chain(found.ints.iter().flatten()).map(|value| format!("int {value}")));
    values.extend(found.string.iter().chain(found.strings.iter().flatten()).map(|value| format!("string {value}")));
    values.extend(found.version.iter().chain(found.versions.iter().flatten()).map(|value| format!("version {value}")));
    values
}
