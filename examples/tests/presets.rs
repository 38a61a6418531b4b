//! The page of objectives that people want: each section has the preset as JSON, its case before and after, and is short.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use dra_alloc::objective::Objective;

const PAGE: &str = include_str!("../../docs/presets.md");
/// The cases as tests: they print the reasons that the page quotes.
const CASES: &str = include_str!("../../dra-alloc/tests/it/objective/presets.rs");

/// Largest number of lines of a section.
const MOST_LINES: usize = 14;

#[test]
fn each_preset_has_its_page() {
    let presets = [
        ("Objective::pack_partitions()", Objective::pack_partitions()),
        ("Objective::keep_whole()", Objective::keep_whole()),
        ("Objective::close_together()", Objective::close_together()),
        ("Objective::pair_requests(\"gpus\", \"nics\")", Objective::pair_requests("gpus", "nics")),
        (
            "Objective::least_waste(\"gpu.example.com/memory\")",
            Objective::least_waste("gpu.example.com/memory").unwrap(),
        ),
        ("Objective::spread_over(\"nic.example.com/pf\")", Objective::spread_over("nic.example.com/pf").unwrap()),
    ];
    for (name, preset) in presets {
        let mut sections = PAGE.split("\n## ").filter(|section| section.contains(&format!("`{name}`")));
        let section = sections.next().unwrap_or_else(|| panic!("no section for {name}"));
        assert!(sections.next().is_none(), "{name}");
        let json = section.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(Objective::from_json(&serde_json::from_str(json).unwrap()).unwrap(), preset, "{name}");
        for part in ["- **Case**: ", "- **Before**: ", "- **After**: "] {
            assert!(section.contains(part), "{name}: {part}");
        }
        let after = section.split("- **After**: ").nth(1).unwrap().lines().next().unwrap();
        let reason = after.split('"').nth(1).unwrap();
        assert!(CASES.contains(reason), "{name}: {reason}");
        assert!(section.trim().lines().count() <= MOST_LINES, "{name}");
    }
}
