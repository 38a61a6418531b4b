//! Memory of what a cache of compiled expressions keeps.

use std::cell::Cell;
use std::sync::Arc;

use crate::cache::Purpose;
use crate::{CompileError, SelectorCache};

#[test]
fn errors_are_kept_within_the_memory() {
    let cache = SelectorCache::with_memory(64 << 10);
    let compilations = Cell::new(0);
    let compile = |text: &str| {
        cache.compiled(Purpose::Selector, text, || {
            compilations.set(compilations.get() + 1);
            Err(CompileError::Program { message: "no".to_owned() })
        })
    };
    assert!(compile("a").is_err());
    assert_eq!(compile("a").unwrap_err().to_string(), "program instantiation failed: no");
    assert_eq!(compilations.get(), 1);
    for number in 0..1_000 {
        assert!(compile(&format!("{number}{}", "b".repeat(100))).is_err());
        assert!(cache.held().1 <= 64 << 10);
    }
    assert!(cache.held().0 > 100);
}

#[test]
fn errors_are_those_of_the_compilation() {
    let cache = SelectorCache::default();
    for text in ["a ||", "1", "device.drivr", "'x'.find('(') == ''"] {
        let first = cache.compile(text).unwrap_err();
        let (entries, memory) = cache.held();
        assert!(memory > first.to_string().len(), "{text}");
        assert_eq!(cache.compile(text).unwrap_err(), first);
        assert_eq!(cache.held(), (entries, memory));
    }
    assert!(Arc::ptr_eq(&cache.compile("true").unwrap(), &cache.compile("true").unwrap()));
}
