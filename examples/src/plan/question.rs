//! Questions to selectors: which term is false on how many devices of a class, and which values there are.

use std::fmt;

use dra_alloc::pool::{LatestGeneration, group_by_pool, slice_devices};
use dra_alloc::selector::{Options, Selector, SelectorInput, TermSurvey, ValueSurvey};
use dra_alloc::{Classes, Profile};
use k8s_openapi::api::resource::v1::{Device, DeviceSelector, ResourceClaim, ResourceSlice};
use serde::Serialize;

/// Begin of the extended resource that each class serves by its name.
const CLASS_OF_NAME: &str = "deviceclass.resource.kubernetes.io/";

/// Largest number of values that are named.
const MOST_VALUES: usize = 8;

/// Devices of the latest generation of each pool, with their drivers.
#[derive(Clone, Debug)]
pub struct Devices<'s>(Vec<(&'s ResourceSlice, &'s Device)>);

impl<'s> Devices<'s> {
    /// Collects the devices of slices.
    pub fn new(slices: impl IntoIterator<Item = &'s ResourceSlice>) -> Self {
        let mut slices: Vec<&ResourceSlice> = slices.into_iter().collect();
        let mut devices = Vec::new();
        for pool in group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices) {
            for slice in pool.slices() {
                devices.extend(slice_devices(slice).iter().map(|device| (slice, device)));
            }
        }
        Self(devices)
    }

    /// Returns all devices as input of selectors.
    pub fn inputs(&self) -> impl Iterator<Item = SelectorInput<'s>> {
        self.0.iter().map(|(slice, device)| SelectorInput::new(&slice.spec.driver, device))
    }

    /// Returns all devices with their drivers and pools.
    pub fn with_pools(&self) -> impl Iterator<Item = (&'s str, &'s str, &'s Device)> {
        self.0.iter().map(|(slice, device)| (slice.spec.driver.as_str(), slice.spec.pool.name.as_str(), *device))
    }

    /// Returns the devices that selectors admit; one that can't be judged is not admitted.
    #[must_use]
    pub fn admitted(&self, selectors: &[Selector]) -> Self {
        let admits = |(slice, device): &&(&'s ResourceSlice, &'s Device)| {
            let input = SelectorInput::new(&slice.spec.driver, device);
            selectors.iter().all(|selector| selector.matches(input).unwrap_or_default())
        };
        Self(self.0.iter().filter(admits).copied().collect())
    }

    /// Returns the number of devices.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A term of a selector that is not true on all devices that it is asked about.
///
/// Displays one line, such as `model == "H200": true on 0 of 16 devices of class gpu; values: H100 (12), A100 (4)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TermAnswer {
    /// Text of the term.
    pub term: String,
    /// Number of devices on which it is true.
    pub holds: usize,
    /// Number of devices that it was asked about.
    pub devices: usize,
    /// Class of these devices; none if the term is one of the class, which was asked about all devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Values that it reads, each with the number of devices, most frequent first: at most eight.
    pub values: Vec<(String, usize)>,
    /// Number of values that are not named.
    pub more: usize,
    /// Number of devices that lack what it reads.
    pub missing: usize,
    /// Error on the first device on which the evaluation fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TermAnswer {
    fn new(survey: &TermSurvey, class: Option<&str>) -> Self {
        let read = survey.read.first().cloned().unwrap_or_default();
        let (values, more) = frequent(&read);
        Self {
            term: survey.term.split_whitespace().collect::<Vec<_>>().join(" "),
            holds: survey.holds,
            devices: survey.holds + survey.fails + survey.errors,
            class: class.map(str::to_owned),
            values,
            more,
            missing: read.missing,
            error: survey.first_error.as_ref().map(|(device, error)| {
                // The advice behind the first sentence is told by the lint.
                let text = error.to_string();
                format!("fails on {}, such as {device}: {}", survey.errors, text.split(". ").next().unwrap_or_default())
            }),
        }
    }
}

/// Returns the most frequent values, and the number of others.
#[must_use]
pub fn frequent(read: &ValueSurvey) -> (Vec<(String, usize)>, usize) {
    let mut values: Vec<(String, usize)> = read.values.iter().map(|(value, count)| (value.clone(), *count)).collect();
    values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = values.len().saturating_sub(MOST_VALUES);
    values.truncate(MOST_VALUES);
    (values, more)
}

impl fmt::Display for TermAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, holds, devices, class, values, more, missing, error } = self;
        let class = class.as_ref().map(|class| format!(" of class {class}")).unwrap_or_default();
        let noun = if *devices == 1 { "device" } else { "devices" };
        write!(f, "{term}: true on {holds} of {devices} {noun}{class}")?;
        if let Some(error) = error {
            write!(f, "; {error}")?;
        }
        if values.is_empty() && *missing == 0 {
            return Ok(());
        }
        let texts = values.iter().map(|(value, count)| format!("{value} ({count})"));
        let others = (*more > 0).then(|| format!("{more} more"));
        let missing = (*missing > 0).then(|| format!("none ({missing})"));
        let texts: Vec<String> = texts.chain(others).chain(missing).collect();
        write!(f, "; values: {}", texts.join(", "))
    }
}

/// Returns the terms that keep devices from the requests of a claim, if too few devices pass all of them.
///
/// # Complexity
/// An evaluation for each device and each selector and term of the requests and their classes.
fn terms_of_claim(
    claim: &ResourceClaim,
    classes: &Classes,
    devices: &Devices<'_>,
    profile: Profile,
) -> Vec<TermAnswer> {
    let requests = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref()?.requests.as_deref()).unwrap_or_default();
    let mut answers = Vec::new();
    for request in requests {
        let exactly = request.exactly.iter().map(|it| (&it.device_class_name, it.selectors.as_deref(), it.count));
        let listed = request.first_available.iter().flatten();
        let listed = listed.map(|it| (&it.device_class_name, it.selectors.as_deref(), it.count));
        for (class, selectors, count) in exactly.chain(listed) {
            let asked = Asked { class, selectors: selectors.unwrap_or_default(), wanted: count.unwrap_or(1) };
            for answer in asked.answers(classes, devices, profile) {
                if !answers.contains(&answer) {
                    answers.push(answer);
                }
            }
        }
    }
    answers
}

/// Class, selectors and number of a request.
struct Asked<'c> {
    class: &'c str,
    selectors: &'c [DeviceSelector],
    wanted: i64,
}

impl Asked<'_> {
    fn answers(&self, classes: &Classes, devices: &Devices<'_>, profile: Profile) -> Vec<TermAnswer> {
        let options = Options::stored().with_profile(profile);
        let named = classes.of_extended_resource(&format!("{CLASS_OF_NAME}{}", self.class));
        let Some(class) = named else { return Vec::new() };
        let of_class = class.spec.as_ref().and_then(|spec| spec.selectors.as_deref()).unwrap_or_default();
        let of_class = compiled(of_class, &options);
        let within = devices.admitted(&of_class);
        let mut answers = surveyed(&of_class, devices, None, &options);
        if within.is_empty() {
            return answers;
        }
        answers.retain(|answer| answer.error.is_some());
        let of_request = compiled(self.selectors, &options);
        let wanted = usize::try_from(self.wanted).unwrap_or_default();
        if of_request.is_empty() || within.admitted(&of_request).len() >= wanted {
            return answers;
        }
        answers.extend(surveyed(&of_request, &within, Some(self.class), &options));
        answers
    }
}

/// Returns the selectors that compile.
pub(crate) fn compiled(selectors: &[DeviceSelector], options: &Options) -> Vec<Selector> {
    let texts = selectors.iter().filter_map(|selector| selector.cel.as_ref());
    texts.filter_map(|cel| Selector::compile(&cel.expression, options).ok()).collect()
}

/// Returns the terms of selectors that are not true on all devices.
fn surveyed(selectors: &[Selector], devices: &Devices<'_>, class: Option<&str>, options: &Options) -> Vec<TermAnswer> {
    let surveys = selectors.iter().flat_map(|selector| selector.survey_terms(devices.inputs(), options));
    let partly = surveys.filter(|survey| survey.holds < devices.len());
    partly.map(|survey| TermAnswer::new(&survey, class)).collect()
}

/// Returns the terms that keep devices from the claims of a pod.
#[must_use]
pub fn terms_of_claims<'c>(
    claims: impl Iterator<Item = &'c ResourceClaim>,
    classes: &Classes,
    devices: &Devices<'_>,
    profile: Profile,
) -> Vec<TermAnswer> {
    let mut answers = Vec::new();
    for answer in claims.flat_map(|claim| terms_of_claim(claim, classes, devices, profile)) {
        if !answers.contains(&answer) {
            answers.push(answer);
        }
    }
    answers
}
