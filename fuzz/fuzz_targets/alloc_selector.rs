//! Selectors: no text panics, hangs or grows without bound, neither when it is compiled nor on a device; an expression
//! gives equal answers on repetition.
#![no_main]

use dra_alloc::selector::{Options, Selector, SelectorInput};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|expression: &str| {
    let attribute = |name: &str, attribute| (format!("d.example/{name}"), attribute);
    let strings = Some(vec!["a".to_owned(), "b".to_owned()]);
    let attributes = [
        attribute("int", DeviceAttribute { int: Some(1), ..Default::default() }),
        attribute("list", DeviceAttribute { strings, ..Default::default() }),
        attribute("version", DeviceAttribute { version: Some("1.2.3-rc.1".to_owned()), ..Default::default() }),
    ];
    let memory = DeviceCapacity { value: Quantity("8Gi".to_owned()), ..Default::default() };
    let device = Device {
        attributes: Some(attributes.into()),
        capacity: Some([("memory".to_owned(), memory)].into()),
        ..Default::default()
    };
    let input = SelectorInput::new("d.example", &device);
    let of_any_type = Selector::compile_any(expression, &Options::stored());
    if let Ok(selector) = Selector::compile(expression, &Options::stored()) {
        assert!(of_any_type.is_ok());
        assert_eq!(selector.matches(input), selector.matches(input));
    }
    if let Ok(selector) = Selector::compile_derived(expression, &Options::stored()) {
        assert_eq!(selector.derive(input), selector.derive(input));
    }
});
