//! Patterns of an expression: how often they are compiled, and how large they may be together.

use dra_attrs::{Gate, GateSet};
use k8s_openapi::api::resource::v1::Device;
use proptest::prelude::*;

use crate::functions::regex::compilations;
use crate::{CompileError, EvaluationError, Options, Selector, SelectorInput, Value};

const TOO_LARGE: &str = "error parsing regexp: expression too large";

fn compile(expression: &str) -> Result<Selector, CompileError> {
    Selector::compile(expression, &Options::stored())
}

fn matches(selector: &Selector) -> Result<bool, EvaluationError> {
    selector.matches(SelectorInput::new("gpu.example", &Device::default()))
}

/// Returns an expression that searches for each of the patterns in turn.
fn searches(patterns: impl IntoIterator<Item = String>) -> String {
    let search = |pattern: String| format!("'x'.matches(r'{pattern}')");
    patterns.into_iter().map(search).collect::<Vec<_>>().join(" || ")
}

#[test]
fn equal_patterns_are_compiled_once_and_at_first_use() {
    let before = compilations();
    let equal = compile(&searches(vec![r"\pN{9}".to_owned(); 300])).unwrap();
    assert_eq!(compilations(), before);
    assert_eq!((matches(&equal), matches(&equal)), (Ok(false), Ok(false)));
    assert_eq!(compilations(), before + 1);
    // The direct form and the program share the pattern.
    let direct = compile(r"device.driver.matches('^gpu[.]')").unwrap();
    assert!(direct.is_direct());
    assert_eq!((matches(&direct), compilations()), (Ok(true), before + 2));
    let interpreted = direct.evaluate(SelectorInput::new("gpu.example", &Device::default()));
    assert_eq!((interpreted.result, compilations()), (Ok(Value::Bool(true)), before + 2));
    // A search that is not reached compiles nothing.
    let unreached = compile(r"true || 'x'.find(r'\pL{9}') == 'x' || 'x'.matches('a')").unwrap();
    assert_eq!((matches(&unreached), compilations()), (Ok(true), before + 2));
}

/// The dearest patterns known, each of them accepted alone.
const WORST: [&str; 9] = [
    r"(?i)\pL{20}",
    r"\pL{24}",
    r"\PL{24}",
    r"(\pL|\pN){16}",
    ".{800}",
    r"\p{Han}{200}",
    r"(?i)k{900}",
    r"(?i)[\x00-\x{10FFFF}]",
    r"(?i)[\PLa]{9}",
];

#[test]
fn the_worst_patterns_are_compiled_at_first_use_within_their_work() {
    let before = compilations();
    for pattern in WORST {
        let equal =
            compile(&searches(vec![pattern.to_owned(); 200])).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        // Compilation may take a half of the work of an evaluation.
        assert!(equal.program.compilation() < 4_600_000, "{pattern}");
        let different = searches((0..200).map(|number| format!("{pattern}x{number}")));
        let Err(CompileError::Type { report }) = compile(&different) else { panic!("{pattern}") };
        assert_eq!(report.issues().map(|(_, message)| message).collect::<Vec<_>>(), [TOO_LARGE]);
    }
    assert_eq!(compilations(), before);
}

#[test]
fn an_evaluation_pays_for_its_patterns_whatever_was_compiled_before() {
    let search = format!("'{}'.matches('y.{{50}}')", "x".repeat(1_000));
    let long = format!("lists.range(1200).all(i, !{search})");
    assert_eq!(matches(&compile(&long).unwrap()), Ok(true));
    // The search is not reached, and the pattern counts all the same.
    let longer = compile(&format!(r"{long} || 'x'.matches(r'\pL{{24}}')")).unwrap();
    let first = matches(&longer);
    assert_eq!(first, Err(EvaluationError::CostExceeded));
    assert_eq!(matches(&longer), first);
    let shorter = compile(&format!(r"{search} || 'x'.matches(r'\pL{{24}}')")).unwrap();
    assert_eq!((matches(&shorter), matches(&shorter)), (Ok(false), Ok(false)));
}

#[test]
fn what_is_too_large_is_refused_at_its_place() {
    let rows = [
        (r"'x'.matches(r'\pL{100}')", Some(13)),
        (r"matches('x', r'\pL{100}')", Some(14)),
        (r"'x'.find(r'\pL{100}') == ''", Some(10)),
        (r"'x'.findAll(r'\pL{100}', 2) == []", Some(13)),
        (r"'x'.find(r'\pL{24}x') == '' && 'x'.matches(r'\pL{24}')", Some(44)),
        (r"'x'.find(r'\pL{24}') == '' && 'x'.matches(r'\pL{24}')", None),
        // Only its text would be a large pattern.
        (r"matches(r'\pL{100}', 'x')", None),
    ];
    for (expression, column) in rows {
        let place = match compile(expression) {
            Ok(_) => None,
            Err(CompileError::Type { report }) => {
                assert_eq!(report.issues().next().unwrap().1, TOO_LARGE);
                report.issues().next().unwrap().0.map(|(_, column)| column)
            }
            Err(error) => panic!("{expression}: {error}"),
        };
        assert_eq!(place, column, "{expression}");
    }
    let computed = compile(r"'x'.matches(string(r'\pL{100}'))").unwrap_err();
    assert_eq!(computed, CompileError::too_large());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The expression of a new object is accepted if that of a stored one is, and then all of its patterns compile.
    #[test]
    fn validation_and_allocation_agree(
        patterns in prop::collection::vec(
            ("[a-c]?", prop::sample::select(vec![r"\pL", r"(?i)\pN", ".", "[^k]", "(?i)k", "ab"]), 1_usize..40),
            1..8,
        ),
    ) {
        let patterns = patterns.into_iter().map(|(start, part, count)| format!("{start}{part}{{{count}}}"));
        let expression = searches(patterns.chain([".{700}".to_owned()]));
        let new = Selector::compile(&expression, &Options::new_expression(GateSet::all().without(Gate::ListTypeAttributes)));
        let stored = compile(&expression);
        prop_assert_eq!(new.is_ok(), stored.is_ok());
        if let Ok(stored) = stored {
            prop_assert!(matches(&stored).is_ok(), "{}", expression);
        }
    }
}
