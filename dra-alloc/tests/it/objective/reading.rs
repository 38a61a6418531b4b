//! Objectives as JSON: all terms, and each error with its field.

use dra_alloc::objective::{Objective, ObjectiveError, PairCost, PairScope, Pairs, Term};
use serde_json::{Value, json};

const ROOT: &str = "resource.kubernetes.io/pcieRoot";

#[test]
fn every_term_is_read_and_shown() {
    let terms: [(Value, &str); 18] = [
        (json!({"term": "opened", "by": "pool"}), "opened by pool"),
        (json!({"term": "opened", "by": {"attribute": ROOT}}), "opened by resource.kubernetes.io/pcieRoot"),
        (json!({"term": "spread", "by": "counter_set", "weight": 3}), "3 × spread by counter set"),
        (json!({"term": "room", "by": "counter_set"}), "room"),
        (json!({"term": "room", "by": "counter_set", "size": "slices"}), "room in slices"),
        (json!({"term": "options"}), "options"),
        (json!({"term": "stranded", "weight": null}), "stranded"),
        (json!({"term": "distance", "levels": [ROOT, "a.b/c"]}), "distance by resource.kubernetes.io/pcieRoot, a.b/c"),
        (json!({"term": "distance", "levels": ["a.b/c"], "across_claims": true}), "distance by a.b/c across claims"),
        (json!({"term": "links", "scores": [["d/p/a", "d/p/b", 7]], "default": 2}), "links of 1 pairs"),
        (json!({"term": "pairing", "a": "g", "b": "n", "attribute": "a.b/c"}), "pairing of g with n by a.b/c"),
        (json!({"term": "waste", "capacity": "a.b/c"}), "waste of a.b/c"),
        (json!({"term": "prefer", "selectors": ["true", "false"]}), "prefer true, then false"),
        (json!({"term": "tainted"}), "tainted"),
        (json!({"term": "conditions"}), "conditions"),
        (json!({"term": "alternative"}), "alternative"),
        (json!({"term": "displaced", "units": [{"id": "u", "claims": ["a/b"], "price": 1}]}), "displaced"),
        (
            json!({"term": "outlook", "of": {"term": "links", "scores": []}, "times": 2}),
            "outlook of links of 0 pairs, 2 times",
        ),
    ];
    for (term, shown) in terms {
        let objective = Objective::from_json(&json!([[term]])).unwrap();
        assert_eq!(objective.to_string(), shown);
        assert_eq!(Objective::new(objective.levels().to_vec()), Ok(objective));
    }
    let levels =
        json!([[{"term": "options"}, {"term": "room", "by": "counter_set", "weight": 2}], [], [{"term": "tainted"}]]);
    assert_eq!(Objective::from_json(&levels).unwrap().to_string(), "options + 2 × room, then tainted");
    let empty = Objective::from_json(&json!([[], []])).unwrap();
    assert!(empty.is_empty() && empty.to_string() == "the first solution");
}

#[test]
fn an_error_names_its_field() {
    let of = |term: Value| json!([[], [term]]);
    let many: Vec<Value> = (0..17).map(|_| json!({"term": "options"})).collect();
    let unit = |id: &str, claim: &str| json!({"id": id, "claims": [claim], "price": 0});
    let errors: [(Value, &str); 22] = [
        (json!({}), "objective: must be a list"),
        (json!([1]), "objective[0]: must be a list"),
        (of(json!(1)), "objective[1][0]: must be an object"),
        (of(json!({})), "objective[1][0].term: is missing"),
        (of(json!({"term": "best"})), "objective[1][0].term: there is no term \"best\""),
        (of(json!({"term": "options", "by": "pool"})), "objective[1][0].by: term options has no such field"),
        (of(json!({"term": "options", "weight": 0})), "objective[1][0].weight: must be at least 1"),
        (of(json!({"term": "options", "weight": 1.5})), "objective[1][0].weight: must be a whole number below 2^32"),
        (of(json!({"term": "room", "by": "pool"})), "objective[1][0].by: must be \"counter_set\""),
        (
            of(json!({"term": "opened", "by": "card"})),
            "objective[1][0].by: must be \"pool\", \"counter_set\" or {\"attribute\": name}",
        ),
        (
            of(json!({"term": "opened", "by": {"attribute": "a/b", "x": 1}})),
            "objective[1][0].by.x: term opened has no such field",
        ),
        (
            of(json!({"term": "waste", "capacity": "memory"})),
            "objective[1][0].capacity: attribute name \"memory\": must be fully qualified, domain/name",
        ),
        (of(json!({"term": "distance", "levels": []})), "objective[1][0].levels: must not be empty"),
        (
            of(json!({"term": "distance", "levels": ["a.b/c"], "across_claims": 1})),
            "objective[1][0].across_claims: must be true or false",
        ),
        (
            of(json!({"term": "links", "scores": [["d/p/a", "b", 1]]})),
            "objective[1][0].scores[0][1]: \"b\" is not of the form driver/pool/device",
        ),
        (of(json!({"term": "links", "scores": [[1]]})), "objective[1][0].scores[0]: must be [device, device, score]"),
        (
            of(json!({"term": "outlook", "of": {"term": "options"}, "times": 1})),
            "objective[1][0].of.term: must be \"links\" or \"distance\"",
        ),
        (
            of(json!({"term": "displaced", "units": [unit("u", "a/b"), unit("u", "a/c")]})),
            "objective[1][0].units[1].id: \"u\" is there twice",
        ),
        (
            of(json!({"term": "displaced", "units": [unit("u", "a/b"), unit("v", "a/b")]})),
            "objective[1][0].units[1].claims: \"a/b\" is there twice",
        ),
        (
            of(json!({"term": "displaced", "units": [{"id": "u", "claims": [], "price": -1}]})),
            "objective[1][0].units[0].price: must be a whole number",
        ),
        (json!([many]), "objective[0]: 17, more than 16"),
        (json!((0..17).map(|_| json!([])).collect::<Vec<_>>()), "objective: 17, more than 16"),
    ];
    for (json, wanted) in errors {
        assert_eq!(Objective::from_json(&json).unwrap_err().to_string(), wanted);
    }
    let selector = Objective::from_json(&of(json!({"term": "prefer", "selectors": ["true", "device."]}))).unwrap_err();
    assert!(selector.to_string().starts_with("objective[1][0].selectors[1]: "), "{selector}");
    assert!(matches!(selector, ObjectiveError::Selector { .. }) && std::error::Error::source(&selector).is_some());
}

#[test]
fn links_need_no_devices_that_are_there() {
    let scores = vec![("d/p/a".parse().unwrap(), "d/p/b".parse().unwrap(), 1)];
    let cost = PairCost::Links { scores, otherwise: 0 };
    assert!(Objective::new([vec![Term::Pairs(Pairs { cost, within: PairScope::default() }).into()]]).is_ok());
}
