//! Positions in lists, which are compared, hashed and printed as their numbers.

use std::cmp::Ordering;

use dra_attrs::Index;

use super::hash;

#[test]
fn a_position_is_its_number() {
    let list = ["a", "b"];
    let (first, second) = (Index::<&str>::from(0), Index::from(1));
    assert_eq!((first.of(&list), second.of(&list), Index::from(2).of(&list)), (Some(&"a"), Some(&"b"), None));
    assert_eq!(first, Index::FIRST);
    assert_ne!(first, second);
    assert_eq!(first.cmp(&second), Ordering::Less);
    assert_eq!(second.partial_cmp(&first), Some(Ordering::Greater));
    assert_eq!(second.max(first), second);
    assert!(hash(&first) == hash(&Index::<&str>::FIRST) && hash(&first) != hash(&second));
    assert_eq!((usize::from(second), format!("{second}"), format!("{second:?}")), (1, "1".to_owned(), "1".to_owned()));
}
