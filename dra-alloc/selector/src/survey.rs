//! Answers of the terms of a selector on some devices: whoever has written a selector that admits nothing asks for the term
//! that is false, and for the values that there are.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::DeviceAttribute;

use crate::device::names::{self, Part};
use crate::device::soundness;
use crate::error::EvaluationError;
use crate::input::SelectorInput;
use crate::meter::Bound;
use crate::options::Options;
use crate::selector::Selector;
use crate::syntax::terms::terms;

/// Most work of a survey, in parts of a unit of a search's work (64 are 0.1 to 0.2 microseconds): about a second.
const MOST_PARTS: u64 = 64 * 5_000_000;

/// Parts that looking at a device costs for each term, beside the evaluation.
const PARTS_OF_LOOK: u64 = 64;

/// Largest number of different values of an attribute that are counted.
const MOST_VALUES: usize = 1_000;

/// Term of a selector, with what it is on some devices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermSurvey {
    /// Text of the term, an expression by itself.
    pub term: String,
    /// Number of devices on which it is true.
    pub holds: usize,
    /// Number of devices on which it is false.
    pub fails: usize,
    /// Number of devices on which its evaluation fails.
    pub errors: usize,
    /// Name and error of the first device on which its evaluation fails.
    pub first_error: Option<(String, EvaluationError)>,
    /// Attributes and capacities that it reads, with their values; empty if they are not known before it is evaluated.
    pub read: Vec<ValueSurvey>,
    /// Number of devices that were not looked at, since it would have been too much work.
    pub left_out: usize,
}

/// Values of an attribute or capacity on some devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueSurvey {
    /// Name, as `domain/id`.
    pub name: String,
    /// Numbers of devices, by value: a text without quotes, a list in brackets. At most 1,000 different values.
    pub values: BTreeMap<String, usize>,
    /// Number of devices with other values than these.
    pub others: usize,
    /// Number of devices without a value.
    pub missing: usize,
}

impl Selector {
    /// Returns the terms of the expression: the parts that `&&` joins at its top, also within parentheses around all of it,
    /// or within `cel.bind`. Each is an expression by itself; if no `&&` is there, the expression is the only term.
    ///
    /// # Complexity
    /// Linear in the length of the expression, for each of the parentheses around it, of which at most 32 are opened.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector};
    /// let selector = Selector::compile("device.driver == 'gpu.example' && (true || false)", &Options::stored())?;
    /// assert_eq!(selector.terms(), ["device.driver == 'gpu.example'", "(true || false)"]);
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn terms(&self) -> Vec<String> {
        terms(self.expression())
    }

    /// Evaluates each term on devices by itself, and counts. Terms count whether or not another one is false already, so that
    /// an error may be one that the whole expression does not have. A term that does not compile by itself is left out.
    ///
    /// # Complexity
    /// An evaluation for each device and term, until that was work of about a second.
    ///
    /// ```
    /// use dra_selector::{Options, Selector, SelectorInput};
    /// use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};
    /// let gpu = |model: &str| Device {
    ///     attributes: Some([("model".into(), DeviceAttribute { string: Some(model.into()), ..Default::default() })].into()),
    ///     ..Default::default()
    /// };
    /// let devices = [gpu("A100"), gpu("H100"), gpu("H100")];
    /// let selector = Selector::compile("device.attributes['gpu.example'].model == 'H200'", &Options::stored())?;
    /// let inputs = devices.iter().map(|device| SelectorInput::new("gpu.example", device));
    /// let [term] = &selector.survey_terms(inputs, &Options::stored())[..] else { panic!("one term") };
    /// assert_eq!((term.holds, term.fails), (0, 3));
    /// assert_eq!(term.read[0].values, [("A100".to_owned(), 1), ("H100".to_owned(), 2)].into());
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn survey_terms<'d>(
        &self,
        devices: impl IntoIterator<Item = SelectorInput<'d>>,
        options: &Options,
    ) -> Vec<TermSurvey> {
        let terms = self.terms().into_iter().filter_map(|term| Self::compile(&term, options).ok());
        let mut surveys: Vec<(Self, TermSurvey)> = terms
            .map(|term| {
                let survey = TermSurvey::new(&term);
                (term, survey)
            })
            .collect();
        let mut left = MOST_PARTS;
        for input in devices {
            for (term, survey) in &mut surveys {
                if left == 0 {
                    survey.left_out += 1;
                } else {
                    left = left.saturating_sub(survey.add(term, input, left));
                }
            }
        }
        surveys.into_iter().map(|(_, survey)| survey).collect()
    }
}

impl Selector {
    /// Evaluates the whole expression on devices, and counts, as [`Selector::survey_terms`] does for each term.
    ///
    /// # Complexity
    /// An evaluation for each device, until that was work of about a second.
    ///
    /// ```
    /// # use dra_selector::{Options, Selector, SelectorInput};
    /// # use k8s_openapi::api::resource::v1::Device;
    /// let selector = Selector::compile("device.attributes['gpu.example'].model == 'H200'", &Options::stored())?;
    /// let device = Device { name: "bare".into(), ..Default::default() };
    /// let survey = selector.survey([SelectorInput::new("gpu.example", &device)]);
    /// assert_eq!((survey.errors, survey.read[0].missing), (1, 1));
    /// # Ok::<(), dra_selector::CompileError>(())
    /// ```
    #[must_use]
    pub fn survey<'d>(&self, devices: impl IntoIterator<Item = SelectorInput<'d>>) -> TermSurvey {
        let (mut survey, mut left) = (TermSurvey::new(self), MOST_PARTS);
        for input in devices {
            if left == 0 {
                survey.left_out += 1;
            } else {
                left = left.saturating_sub(survey.add(self, input, left));
            }
        }
        survey
    }
}

impl TermSurvey {
    fn new(term: &Selector) -> Self {
        let named =
            |read: &(String, String)| ValueSurvey { name: format!("{}/{}", read.0, read.1), ..Default::default() };
        let attributes = term.attributes_read().unwrap_or_default().iter();
        let capacities = term.capacities_read().unwrap_or_default().iter();
        Self {
            term: term.expression().to_owned(),
            holds: 0,
            fails: 0,
            errors: 0,
            first_error: None,
            read: attributes.chain(capacities).map(named).collect(),
            left_out: 0,
        }
    }

    /// Counts a device, and returns the work that it was.
    fn add(&mut self, term: &Selector, input: SelectorInput<'_>, left: u64) -> u64 {
        let (answer, parts) = match (soundness::check(input.device), term.answer(input)) {
            (Err(error), _) => (Err(error), 0),
            (Ok(()), Some((holds, parts))) => (Ok(holds), parts),
            (Ok(()), None) => term.run_within(input, Bound { parts: left, stop: None }),
        };
        match answer {
            Ok(true) => self.holds += 1,
            Ok(false) => self.fails += 1,
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| (input.device.name.clone(), error));
            }
        }
        for read in &mut self.read {
            read.add(input);
        }
        parts.saturating_add(PARTS_OF_LOOK)
    }
}

impl ValueSurvey {
    /// Counts the values of all attributes and capacities of devices, by name.
    ///
    /// # Complexity
    /// A look-up for each name and device.
    ///
    /// ```
    /// use dra_selector::{SelectorInput, ValueSurvey};
    /// use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};
    /// let attribute = DeviceAttribute { int: Some(1), ..Default::default() };
    /// let device = Device { attributes: Some([("numa".into(), attribute)].into()), ..Default::default() };
    /// let all = ValueSurvey::of_devices(&[SelectorInput::new("gpu.example", &device)]);
    /// assert_eq!((all[0].name.as_str(), all[0].values["1"]), ("gpu.example/numa", 1));
    /// ```
    #[must_use]
    pub fn of_devices(devices: &[SelectorInput<'_>]) -> Vec<Self> {
        let parts = [Part::Attributes, Part::Capacity];
        let all = devices.iter().flat_map(|input| parts.into_iter().flat_map(move |part| names::all(input, part)));
        let names: BTreeSet<String> = all.map(|(domain, id)| format!("{domain}/{id}")).collect();
        let surveyed = names.into_iter().map(|name| {
            let mut survey = Self { name, ..Self::default() };
            for input in devices {
                survey.add(*input);
            }
            survey
        });
        surveyed.collect()
    }

    fn add(&mut self, SelectorInput { driver, device }: SelectorInput<'_>) {
        let (domain, id) = self.name.split_once('/').unwrap_or_default();
        let attribute = names::find(device.attributes.as_ref(), driver, domain, id).map(shown);
        let capacity = || names::find(device.capacity.as_ref(), driver, domain, id).map(|it| it.value.0.clone());
        let Some(value) = attribute.or_else(capacity) else {
            self.missing += 1;
            return;
        };
        let is_full = self.values.len() >= MOST_VALUES;
        match self.values.get_mut(&value) {
            Some(count) => *count += 1,
            None if is_full => self.others += 1,
            None => drop(self.values.insert(value, 1)),
        }
    }
}

/// Returns the value of an attribute as a text: a list in brackets.
fn shown(attribute: &DeviceAttribute) -> String {
    let texts = |list: &[String]| format!("[{}]", list.join(", "));
    let joined = |list: Vec<String>| texts(&list);
    let DeviceAttribute { bool, bools, int, ints, string, strings, version, versions } = attribute;
    let scalar = bool.map(|it| it.to_string()).or_else(|| int.map(|it| it.to_string()));
    let scalar = scalar.or_else(|| string.clone()).or_else(|| version.clone());
    let list = || {
        let bools = bools.as_ref().map(|list| joined(list.iter().map(ToString::to_string).collect()));
        let ints = || ints.as_ref().map(|list| joined(list.iter().map(ToString::to_string).collect()));
        bools.or_else(ints).or_else(|| strings.as_deref().map(texts)).or_else(|| versions.as_deref().map(texts))
    };
    scalar.or_else(list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::resource::v1::Device;
    use proptest::prelude::*;

    #[test]
    fn values_that_a_term_reads_are_counted() {
        let attribute = |value: &str| DeviceAttribute { string: Some(value.into()), ..Default::default() };
        let device = |model: Option<&str>| Device {
            name: "d".into(),
            attributes: model.map(|model| [("g.example/model".into(), attribute(model))].into()),
            ..Default::default()
        };
        let devices = [device(Some("a")), device(Some("b")), device(None)];
        let selector =
            Selector::compile("true && device.attributes['g.example'].model == 'a'", &Options::stored()).unwrap();
        let inputs = devices.iter().map(|device| SelectorInput::new("g.example", device));
        let surveys = selector.survey_terms(inputs, &Options::stored());
        let counts: Vec<_> = surveys.iter().map(|it| (it.holds, it.fails, it.errors)).collect();
        assert_eq!(counts, [(3, 0, 0), (1, 1, 1)]);
        let read = &surveys[1].read[0];
        assert_eq!((read.name.as_str(), read.values.len(), read.missing), ("g.example/model", 2, 1));
    }

    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop_oneof!["device\\.driver == '[ab]'", Just("true".to_owned()), Just("false".to_owned())];
        leaf.prop_recursive(4, 16, 2, |inner| {
            let two = |operator: &'static str| {
                (inner.clone(), inner.clone()).prop_map(move |(left, right)| format!("{left} {operator} {right}"))
            };
            prop_oneof![
                two("&&"),
                two("||"),
                inner.clone().prop_map(|inner| format!("({inner})")),
                inner.prop_map(|inner| format!("cel.bind(x, device.driver, {inner})"))
            ]
        })
    }

    proptest! {
        /// An expression without errors is true where all of its terms are.
        #[test]
        fn an_expression_is_the_conjunction_of_its_terms(text in expression(), driver in "[abc]") {
            let options = Options::stored();
            let device = Device::default();
            let input = SelectorInput::new(&driver, &device);
            let whole = Selector::compile(&text, &options).unwrap();
            let each = whole.terms().into_iter().map(|term| Selector::compile(&term, &options).unwrap().matches(input));
            let all = each.collect::<Result<Vec<bool>, _>>().unwrap().into_iter().all(|holds| holds);
            prop_assert_eq!(whole.matches(input).unwrap(), all);
        }
    }
}
