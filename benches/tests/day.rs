//! Day of the bench `scale`: who remembers what nodes have refused places each pod where asking all nodes anew does, and asks
//! few of them.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use benches::day::Day;

#[test]
fn kept_verdicts_place_each_pod_where_asking_anew_does() {
    for mean_stay_hours in [2, 11, 12, 16] {
        let day = |keeps_verdicts| Day { nodes: 40, pods: 1_200, mean_stay_hours, keeps_verdicts }.play();
        let (anew, kept) = (day(false), day(true));
        println!(
            "{mean_stay_hours} h: {} of 1,200 placed, {} and {} nodes asked",
            anew.placed(),
            anew.asked,
            kept.asked
        );
        assert_eq!(anew.placed, kept.placed, "{mean_stay_hours} h");
        assert!(kept.asked < anew.asked, "{mean_stay_hours} h");
    }
}
