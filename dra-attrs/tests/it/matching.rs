//! Table of matchAttribute and distinctAttribute cases.

use dra_attrs::{DistinctState, Index, ListTypes, MatchError, MatchState, Profile, Scalar, ValueSet};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::{int, ints, string, version};

const GATES: [ListTypes; 3] = [ListTypes::Enabled, ListTypes::Disabled, ListTypes::Refused];

/// Result of pushing devices: the position of the first failing device and its violation.
type Verdict = Result<(), (usize, MatchError)>;

fn matches(devices: &[Option<DeviceAttribute>], lists: ListTypes) -> Verdict {
    let mut state = MatchState::new();
    push_all(devices, lists, |set| state.push(&set))
}

fn distinct(devices: &[Option<DeviceAttribute>], lists: ListTypes) -> Verdict {
    let mut state = DistinctState::new();
    push_all(devices, lists, |set| state.push(&set))
}

fn push_all<'a>(
    devices: &'a [Option<DeviceAttribute>],
    lists: ListTypes,
    mut push: impl FnMut(ValueSet<'a>) -> Result<(), MatchError>,
) -> Verdict {
    for (index, device) in devices.iter().enumerate() {
        push(ValueSet::from_attribute(device.as_ref(), lists)).map_err(|violation| (index, violation))?;
    }
    Ok(())
}

#[test]
fn table_with_list_types() {
    // req: 6072-MATCH-2
    let bool = |value| DeviceAttribute { bool: Some(value), ..DeviceAttribute::default() };
    let no_match = Err((1, MatchError::NothingInCommon));
    let repeated = Err((1, MatchError::Repeated { with: Index::from(0) }));
    let rows = [
        (int(4), int(4), Ok(()), repeated),
        (int(4), int(6), no_match, Ok(())),
        (int(4), ints(&[6, 4, 5, 7]), Ok(()), repeated),
        (int(0), ints(&[6, 4, 5, 7]), no_match, Ok(())),
        (ints(&[1, 2]), ints(&[2, 3]), Ok(()), repeated),
        (ints(&[1, 2]), ints(&[3, 4]), no_match, Ok(())),
        (ints(&[1, 1]), ints(&[1]), Ok(()), repeated),
        (int(1), string("1"), no_match, Ok(())),
        (int(1), bool(true), no_match, Ok(())),
        (int(1), version("1.0.0"), no_match, Ok(())),
        (string("1.0.0"), version("1.0.0"), no_match, Ok(())),
        (version("1.0.0+a"), version("1.0.0+b"), no_match, Ok(())),
        (int(i64::MIN), ints(&[i64::MAX, i64::MIN]), Ok(()), repeated),
    ];
    for (a, b, expected_match, expected_distinct) in rows {
        let pairs = [[Some(a.clone()), Some(b.clone())], [Some(b), Some(a)]];
        for pair in pairs {
            assert_eq!(matches(&pair, ListTypes::Enabled), expected_match, "{pair:?}");
            assert_eq!(distinct(&pair, ListTypes::Enabled), expected_distinct, "{pair:?}");
        }
    }
}

#[test]
fn absent_and_empty_violate() {
    for lists in GATES {
        assert_eq!(matches(&[None], lists), Err((0, MatchError::Missing)));
        assert_eq!(distinct(&[None], lists), Err((0, MatchError::Missing)));
        assert_eq!(matches(&[Some(int(0)), None], lists), Err((1, MatchError::Missing)));
        assert_eq!(distinct(&[Some(int(0)), None], lists), Err((1, MatchError::Missing)));
    }
    for empty in [ints(&[]), DeviceAttribute::default()] {
        assert_eq!(matches(&[Some(empty.clone())], ListTypes::Enabled), Err((0, MatchError::NoValue)));
        assert_eq!(distinct(&[Some(int(1)), Some(empty)], ListTypes::Enabled), Err((1, MatchError::NoValue)));
    }
}

#[test]
fn scalars_need_no_gate() {
    // req: 6072-MATCH-1, 6072-MATCH-10
    for lists in GATES {
        assert_eq!(matches(&[Some(int(4)), Some(int(6))], lists), Err((1, MatchError::NothingInCommon)));
        assert_eq!(matches(&[Some(int(4)), Some(int(4))], lists), Ok(()));
        assert_eq!(distinct(&[Some(int(4)), Some(int(6))], lists), Ok(()));
        assert_eq!(
            distinct(&[Some(int(4)), Some(int(4))], lists),
            Err((1, MatchError::Repeated { with: Index::from(0) }))
        );
        assert_eq!(matches(&[Some(int(1)), Some(string("1"))], lists), Err((1, MatchError::NothingInCommon)));
    }
}

#[test]
fn lists_with_the_gate_off() {
    let list = || Some(ints(&[4]));
    let scalar = || Some(int(4));
    let off = MatchError::ListTypesOff;
    let shipped = Profile::V1_37.rules().allocator.lists_off;
    assert_eq!(matches(&[list()], shipped), Ok(()));
    assert_eq!(matches(&[list(), list()], shipped), Err((1, off)));
    assert_eq!(matches(&[scalar(), list()], shipped), Err((1, off)));
    assert_eq!(matches(&[list(), scalar()], shipped), Err((1, MatchError::NothingInCommon)));
    assert_eq!(distinct(&[scalar(), list()], shipped), Err((1, off)));
    assert_eq!(distinct(&[list(), scalar()], shipped), Ok(()));

    let kep = Profile::Kep.rules().allocator.lists_off;
    assert_eq!(matches(&[list()], kep), Err((0, off)));
    assert_eq!(matches(&[scalar(), list()], kep), Err((1, off)));
    assert_eq!(distinct(&[list()], kep), Err((0, off)));
    // An attribute without any value is no list.
    let empty = || Some(DeviceAttribute::default());
    assert_eq!(matches(&[empty()], kep), Err((0, MatchError::NoValue)));
    assert_eq!(matches(&[scalar(), empty()], shipped), Err((1, MatchError::NoValue)));
}

#[test]
fn intersection_is_over_all_devices() {
    // req: 6072-MATCH-3
    let devices = [Some(ints(&[1, 2])), Some(ints(&[2, 3])), Some(ints(&[1, 3]))];
    assert_eq!(matches(&devices, ListTypes::Enabled), Err((2, MatchError::NothingInCommon)));
    for pair in [&devices[..2], &devices[1..]] {
        assert_eq!(matches(pair, ListTypes::Enabled), Ok(()));
    }
}

fn common(devices: &[DeviceAttribute]) -> Vec<Scalar<'_>> {
    let mut state = MatchState::new();
    for device in devices {
        state.push(&ValueSet::from_attribute(Some(device), ListTypes::Enabled)).unwrap();
    }
    state.common().to_vec()
}

#[test]
fn story_1_co_places_on_node_0() {
    // req: 6072-MATCH-4
    assert_eq!(common(&[ints(&[0, 1, 2, 3]), ints(&[0, 1, 2, 3]), ints(&[0])]), [Scalar::Int(0)]);
}

#[test]
fn story_3_matches_across_quadrants_by_list_only() {
    // req: 6072-MATCH-5, 6072-MATCH-11
    let lists = [ints(&[5, 4, 6, 7]), ints(&[6, 4, 5, 7])];
    assert_eq!(common(&lists), [4, 5, 6, 7].map(Scalar::Int));
    assert_eq!(matches(&[Some(int(5)), Some(int(6))], ListTypes::Enabled), Err((1, MatchError::NothingInCommon)));
}

#[test]
fn element_order_never_changes_a_match() {
    // req: 6072-MATCH-12
    let orders: [[i64; 3]; 6] = [[4, 5, 6], [4, 6, 5], [5, 4, 6], [5, 6, 4], [6, 4, 5], [6, 5, 4]];
    for left in orders {
        for right in orders {
            assert_eq!(common(&[ints(&left), ints(&right)]), [4, 5, 6].map(Scalar::Int));
        }
        assert_eq!(matches(&[Some(int(4)), Some(ints(&left))], ListTypes::Enabled), Ok(()));
        assert_eq!(matches(&[Some(ints(&left)), Some(int(4))], ListTypes::Enabled), Ok(()));
    }
}

#[test]
fn pop_gives_back_what_a_push_narrowed() {
    let (wide, narrow, other) = (ints(&[1, 2, 3]), ints(&[1]), ints(&[3, 9]));
    let set = |attribute| ValueSet::from_attribute(Some(attribute), ListTypes::Enabled);
    let mut state = MatchState::new();
    state.push(&set(&wide)).unwrap();
    state.push(&set(&narrow)).unwrap();
    assert_eq!(state.push(&set(&other)), Err(MatchError::NothingInCommon));
    assert_eq!(state.common(), [Scalar::Int(1)]);
    state.pop();
    state.push(&set(&other)).unwrap();
    assert_eq!((state.common(), state.len()), ([Scalar::Int(3)].as_slice(), 2));
    state.pop();
    state.pop();
    state.pop();
    assert!(state.is_empty() && state.common().is_empty());
}

#[test]
fn distinct_remembers_every_device() {
    // A, B, A: the third device is compared with the first, not only with the second.
    let devices = [Some(string("a")), Some(string("b")), Some(string("a"))];
    assert_eq!(distinct(&devices, ListTypes::Enabled), Err((2, MatchError::Repeated { with: Index::from(0) })));
    let mut state = DistinctState::new();
    let set = |index: usize| ValueSet::from_attribute(devices[index].as_ref(), ListTypes::Enabled);
    state.push(&set(0)).unwrap();
    state.push(&set(1)).unwrap();
    state.pop();
    assert_eq!(state.push(&set(2)), Err(MatchError::Repeated { with: Index::from(0) }));
    state.pop();
    assert_eq!(state.push(&set(2)), Ok(()));
}

#[test]
fn an_invalid_union_is_read_lists_first() {
    let both = DeviceAttribute { int: Some(9), bools: Some(vec![true]), ..ints(&[1]) };
    assert_eq!(ValueSet::from_attribute(Some(&both), ListTypes::Enabled).values(), [Scalar::Int(1)]);
    assert_eq!(ValueSet::from_attribute(Some(&both), ListTypes::Disabled).values(), [Scalar::Int(9)]);
    let empty_list = DeviceAttribute { int: Some(9), ..ints(&[]) };
    assert_eq!(ValueSet::from_attribute(Some(&empty_list), ListTypes::Enabled).values(), [Scalar::Int(9)]);
}

#[test]
fn a_set_is_sorted_without_duplicates_and_displayed() {
    let shown = |attribute: Option<&DeviceAttribute>| {
        let set = ValueSet::from_attribute(attribute, ListTypes::Enabled);
        (set.values().len(), set.to_string())
    };
    assert_eq!(shown(Some(&ints(&[6, 4, 4, 5]))), (3, "4,5,6".to_owned()));
    assert_eq!(shown(Some(&string("a"))), (1, "\"a\"".to_owned()));
    assert_eq!(shown(None), (0, MatchError::Missing.to_string()));
}

#[test]
fn without_a_value_with_the_gate_off() {
    for empty in [ints(&[]), DeviceAttribute::default()] {
        let (empty, scalar) = (|| Some(empty.clone()), || Some(int(4)));
        let shipped = Profile::V1_37.rules().allocator.lists_off;
        assert_eq!(matches(&[empty()], shipped), Ok(()), "the first device is not looked at");
        assert_eq!(matches(&[empty(), scalar()], shipped), Err((1, MatchError::NothingInCommon)));
        assert_eq!(distinct(&[empty(), scalar()], shipped), Ok(()));
        assert!(matches(&[scalar(), empty()], shipped).is_err());
        assert!(distinct(&[scalar(), empty()], shipped).is_err());
        let kep = Profile::Kep.rules().allocator.lists_off;
        assert!(matches(&[empty()], kep).is_err() && distinct(&[empty()], kep).is_err());
    }
}
