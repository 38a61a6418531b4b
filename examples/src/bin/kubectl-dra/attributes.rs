//! The question `attributes`: the attributes and capacities of devices, with their values.

use dra_alloc::Profile;
use dra_alloc::selector::{Options, Selector, SelectorInput, ValueSurvey};
use examples::manifest::Manifests;
use examples::plan::{Devices, frequent};
use examples::table::{Column, Table};

/// There is no class of the name.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no class {name:?}; known: {}", known.join(", "))]
pub(crate) struct NoClass {
    name: String,
    known: Vec<String>,
}

/// Returns the table of the attributes and capacities of all devices, or of those of a class.
pub(crate) fn table(objects: &Manifests, class: Option<&str>, profile: Profile) -> Result<String, NoClass> {
    let mut devices = Devices::new(&objects.slices);
    if let Some(name) = class {
        let names = || objects.classes.iter().filter_map(|class| class.metadata.name.clone());
        let class = objects.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name));
        let class = class.ok_or_else(|| NoClass { name: name.to_owned(), known: names().collect() })?;
        let selectors = class.spec.as_ref().and_then(|spec| spec.selectors.as_deref()).unwrap_or_default();
        let options = Options::stored().with_profile(profile);
        let texts = selectors.iter().filter_map(|selector| selector.cel.as_ref());
        let compiled = texts.filter_map(|cel| Selector::compile(&cel.expression, &options).ok());
        devices = devices.admitted(&compiled.collect::<Vec<_>>());
    }
    let inputs: Vec<SelectorInput<'_>> = devices.inputs().collect();
    let mut table = Table::new([Column::always("NAME"), Column::always("VALUES"), Column::number("NONE", 1)]);
    for survey in ValueSurvey::of_devices(&inputs) {
        table.add([survey.name.clone(), values(&survey), survey.missing.to_string()]);
    }
    Ok(format!("{}devices: {}\n", table.text(), devices.len()))
}

/// Returns the most frequent values, each with its number of devices.
fn values(survey: &ValueSurvey) -> String {
    let (values, more) = frequent(survey);
    let texts = values.into_iter().map(|(value, count)| format!("{value} ({count})"));
    let more = more.saturating_add(usize::from(survey.others > 0));
    let others = (more > 0).then(|| format!("{more} more values"));
    texts.chain(others).collect::<Vec<_>>().join(", ")
}
