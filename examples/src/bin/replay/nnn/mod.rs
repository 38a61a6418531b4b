//! Operations of the crate `nnn`: one tracker through its events, and single decision tables.

mod player;
mod policy;
mod step;
pub(super) mod table;

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Profile;
use serde::Deserialize;
use serde_json::Value;

use self::player::Player;
use self::policy::{Policy, gates};
use self::step::Step;
use super::refusal::{Refusal, read};
use super::steps::{States, StepOperation, StepWriter};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct RunInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, deserialize_with = "crate::settings::gates")]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    state: States,
    #[serde(default)]
    steps: Vec<Step>,
}

pub(super) fn run(input: Value) -> Result<StepOperation, Refusal> {
    let input: RunInput = read(input)?;
    let mut shown = BTreeSet::new();
    for (index, step) in input.steps.iter().enumerate() {
        step.check(&mut shown).map_err(|refusal| refusal.below(&format!("steps[{index}]")))?;
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch, steps: &mut StepWriter<'_>| {
        let options = input.policy.options(input.profile, gates(&input.gates));
        let mut player = Player::new(options);
        for (index, step) in input.steps.iter().enumerate() {
            let output = stopwatch.run(|| player.play(step));
            if steps.is_asked() {
                steps.write(&player.shown(output, input.state.has(index, input.steps.len())))?;
            }
        }
        Ok(())
    }))
}
