//! Reads any timeline and plays it over a small cluster: nothing panics, the play ends, and
//! nothing is asked of the tracker that can't be.
#![no_main]

use dra_attrs::Profile;
use examples::manifest::Manifests;
use examples::nominate::{PlayError, Player, Writers, read_timeline};
use libfuzzer_sys::fuzz_target;
use nnn::{Behavior, NominationOptions};

const CLUSTER: &str = include_str!("../../examples/data/stories/5278/cluster.yaml");

fuzz_target!(|text: &str| {
    let Ok(timeline) = read_timeline(text) else { return };
    assert!(timeline.is_sorted_by_key(|entry| entry.at));
    let mut manifests = Manifests::default();
    manifests.read("cluster.yaml", CLUSTER);
    let options = NominationOptions::new(Profile::V1_37, Behavior::Safe);
    let mut player = Player::new(&manifests, options, Writers::Owners).expect("the cluster is readable");
    let played = timeline.iter().take(100).try_for_each(|entry| player.play(entry));
    let told = player.finish();
    assert!(told.contains("requests of the scheduler: "), "{played:?}");
    assert!(!matches!(played, Err(PlayError::Illegal { .. })), "the tracker is asked for what can't be: {played:?}");
});
