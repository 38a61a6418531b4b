//! Tests of both wire forms of `skipNodeOperations`, and of their meaning.

use dra_attrs::Profile;
use dra_device::skip::{SkipDeclaration, SkipSet, WireForm, WireFormError};
use proptest::prelude::*;
use serde_json::{Value, json};

const FORMS: [WireForm; 2] = [WireForm::Bool, WireForm::List];

fn read(value: Value) -> SkipDeclaration {
    serde_json::from_value(value).unwrap()
}

fn set(prepare: bool, unprepare: bool, future: bool) -> SkipSet {
    SkipSet { prepare, unprepare, future }
}

#[test]
fn the_draft_form_round_trips() {
    // req: 5945-API-1
    let rows = [(json!(null), SkipSet::NONE), (json!(false), SkipSet::NONE), (json!(true), SkipSet::EVERYTHING)];
    for (wire, skipped) in rows {
        let declaration = read(wire.clone());
        assert_eq!(declaration.set(), skipped);
        assert_eq!(serde_json::to_value(&declaration).unwrap(), wire);
        assert_eq!(declaration.to_form(WireForm::from_profile(Profile::Kep)), Ok(declaration));
    }
    assert_eq!(SkipDeclaration::default(), SkipDeclaration::Absent);
}

#[test]
fn the_shipped_form_is_read_and_written() {
    // req: 5945-API-3
    let rows = [
        (json!([]), SkipSet::NONE),
        (json!([SkipSet::NODE_PREPARE_RESOURCES]), set(true, false, false)),
        (json!([SkipSet::NODE_UNPREPARE_RESOURCES]), set(false, true, false)),
        (json!([SkipSet::NODE_UNPREPARE_RESOURCES, SkipSet::NODE_PREPARE_RESOURCES]), set(true, true, false)),
        (json!([SkipSet::ALL_OPERATIONS]), SkipSet::EVERYTHING),
        (
            json!([SkipSet::NODE_PREPARE_RESOURCES, "NodeReset", "", SkipSet::NODE_PREPARE_RESOURCES]),
            set(true, false, false),
        ),
        (json!(["nodeprepareresources"]), SkipSet::NONE),
        (json!(["NodeReset", SkipSet::ALL_OPERATIONS]), SkipSet::EVERYTHING),
    ];
    for (wire, skipped) in rows {
        let declaration = read(wire.clone());
        assert_eq!(declaration.set(), skipped, "{wire}");
        assert_eq!(serde_json::to_value(&declaration).unwrap(), wire, "order and unknown names are kept");
        assert_eq!(declaration.to_form(WireForm::from_profile(Profile::V1_37)), Ok(declaration.clone()));
        assert_eq!(SkipDeclaration::from_kube(declaration.to_kube().as_deref()), declaration);
    }
}

#[test]
fn from_one_form_to_the_other() {
    // req: 5945-API-3
    let rows = [
        (json!(null), WireForm::List, Ok(json!(null))),
        (json!(false), WireForm::List, Ok(json!([]))),
        (json!(true), WireForm::List, Ok(json!([SkipSet::ALL_OPERATIONS]))),
        (json!([]), WireForm::Bool, Ok(json!(false))),
        (json!(["NodeReset"]), WireForm::Bool, Ok(json!(false))),
        (json!([SkipSet::ALL_OPERATIONS]), WireForm::Bool, Ok(json!(true))),
        (json!([SkipSet::NODE_UNPREPARE_RESOURCES, SkipSet::NODE_PREPARE_RESOURCES]), WireForm::Bool, Ok(json!(true))),
        (json!([SkipSet::NODE_PREPARE_RESOURCES]), WireForm::Bool, Err(SkipSet::NODE_PREPARE_RESOURCES)),
        (
            json!([SkipSet::NODE_UNPREPARE_RESOURCES, "NodeReset"]),
            WireForm::Bool,
            Err(SkipSet::NODE_UNPREPARE_RESOURCES),
        ),
    ];
    for (wire, form, expected) in rows {
        let written = read(wire.clone()).to_form(form);
        let written = written.map(|declaration| serde_json::to_value(declaration).unwrap());
        let written = written.map_err(|error| match error {
            WireFormError::NotExpressible { operation } => operation,
            other => panic!("{other}"),
        });
        assert_eq!(written, expected, "{wire}");
    }
}

#[test]
fn other_types_are_refused() {
    for wire in [json!(1), json!("*"), json!({}), json!([1]), json!([null])] {
        assert!(serde_json::from_value::<SkipDeclaration>(wire.clone()).is_err(), "{wire}");
    }
}

#[test]
fn a_k8s_openapi_field_keeps_absent_apart() {
    assert_eq!(SkipDeclaration::from_kube(None), SkipDeclaration::Absent);
    assert_eq!(SkipDeclaration::Absent.to_kube(), None);
    assert_eq!(SkipDeclaration::Bool(false).to_kube(), Some(Vec::new()));
    assert_eq!(SkipDeclaration::Bool(true).to_kube(), Some(vec![SkipSet::ALL_OPERATIONS.to_owned()]));
}

fn declaration() -> impl Strategy<Value = SkipDeclaration> {
    let name = prop::sample::select(vec![
        SkipSet::NODE_PREPARE_RESOURCES,
        SkipSet::NODE_UNPREPARE_RESOURCES,
        SkipSet::ALL_OPERATIONS,
        "NodeReset",
        "",
    ])
    .prop_map(str::to_owned);
    prop_oneof![
        Just(SkipDeclaration::Absent),
        any::<bool>().prop_map(SkipDeclaration::Bool),
        prop::collection::vec(name, 0..4).prop_map(SkipDeclaration::List),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn another_form_decides_alike(declaration in declaration()) {
        for form in FORMS {
            for written in [declaration.to_form(form), declaration.set().to_declaration(form)] {
                let Ok(written) = written else { continue };
                let (before, after) = (declaration.set(), written.set());
                prop_assert_eq!((before.prepare, before.unprepare), (after.prepare, after.unprepare));
            }
        }
    }

    #[test]
    fn the_list_form_says_everything(declaration in declaration()) {
        prop_assert!(declaration.to_form(WireForm::List).is_ok());
    }

    #[test]
    fn intersection_is_a_semilattice(a in declaration(), b in declaration(), c in declaration()) {
        let (a, b, c) = (a.set(), b.set(), c.set());
        prop_assert_eq!(a.intersection(b), b.intersection(a));
        prop_assert_eq!(a.intersection(b).intersection(c), a.intersection(b.intersection(c)));
        prop_assert_eq!(a.intersection(a), a);
        prop_assert_eq!(a.intersection(SkipSet::EVERYTHING), a);
    }
}
