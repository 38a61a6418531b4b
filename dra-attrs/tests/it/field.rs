//! Validation errors and their texts.

use dra_attrs::{BadValue, ErrorType, FieldError, FieldErrors, FieldPath, Quoted};

const TYPES: [(ErrorType, &str, &str); 12] = [
    (ErrorType::NotFound, "FieldValueNotFound", "Not found"),
    (ErrorType::Required, "FieldValueRequired", "Required value"),
    (ErrorType::Duplicate, "FieldValueDuplicate", "Duplicate value"),
    (ErrorType::Invalid, "FieldValueInvalid", "Invalid value"),
    (ErrorType::NotSupported, "FieldValueNotSupported", "Unsupported value"),
    (ErrorType::Forbidden, "FieldValueForbidden", "Forbidden"),
    (ErrorType::TooLong, "FieldValueTooLong", "Too long"),
    (ErrorType::TooShort, "FieldValueTooShort", "Too short"),
    (ErrorType::TooMany, "FieldValueTooMany", "Too many"),
    (ErrorType::TooFew, "FieldValueTooFew", "Too few"),
    (ErrorType::TypeInvalid, "FieldValueTypeInvalid", "Invalid value"),
    (ErrorType::Internal, "InternalError", "Internal error"),
];

#[test]
fn types_have_the_servers_names_on_the_wire_and_its_words_in_messages() {
    for (kind, name, words) in TYPES {
        assert_eq!(serde_json::to_value(kind).unwrap(), name);
        assert_eq!(kind.name(), name);
        assert_eq!(kind.to_string(), words);
        assert_eq!(serde_json::from_value::<ErrorType>(name.into()).unwrap(), kind);
    }
}

#[test]
fn paths_render_fields_indexes_and_keys() {
    let spec = FieldPath::new("spec");
    let devices = spec.child("devices");
    let device = devices.index(3);
    let attributes = device.child("attributes");
    assert_eq!(
        attributes.key("example.com/a").child("int").to_string(),
        "spec.devices[3].attributes[example.com/a].int"
    );
    let root = FieldPath::root();
    assert_eq!(root.child("metadata").child("name").to_string(), "metadata.name");
    assert_eq!(root.to_string(), "");
    assert_eq!(root.index(0).child("x").to_string(), "[0].x");
}

/// Types of which a message shows no value.
const SILENT: [ErrorType; 6] = [
    ErrorType::Required,
    ErrorType::Forbidden,
    ErrorType::TooLong,
    ErrorType::TooShort,
    ErrorType::Internal,
    ErrorType::ServerStops,
];

#[test]
fn messages_show_the_value_only_where_the_server_does() {
    let path = FieldPath::new("f");
    for (kind, _, words) in TYPES {
        let text = FieldError::new(kind, &path, "v".into(), "d").to_string();
        let expected = if SILENT.contains(&kind) { format!("f: {words}: d") } else { format!("f: {words}: \"v\": d") };
        assert_eq!(text, expected);
    }
    assert_eq!(FieldError::new(ErrorType::Invalid, &path, BadValue::Omitted, "d").to_string(), "f: Invalid value: d");
    assert_eq!(FieldError::too_many(&path, 2, 1).to_string(), "f: Too many: 2: must have at most 1 item");
    assert_eq!(FieldError::too_long(&path, 1).to_string(), "f: Too long: may not be more than 1 byte");
    assert_eq!(FieldError::too_long(&path, 63).to_string(), "f: Too long: may not be more than 63 bytes");
    let characters = |max| FieldError::too_long_characters(&path, max).to_string();
    assert_eq!(characters(1), "f: Too long: may not be more than 1 character");
    assert_eq!(characters(63), "f: Too long: may not be more than 63 characters");
    assert_eq!(FieldError::not_found(&path, "x").to_string(), "f: Not found: \"x\"");
    assert_eq!(FieldError::duplicate(&path, BadValue::literal("{}")).to_string(), "f: Duplicate value: {}");
    assert_eq!(FieldError::not_supported(&path, "x", &[]).to_string(), "f: Unsupported value: \"x\"");
}

#[test]
fn texts_are_quoted_as_go_quotes_them() {
    for (text, quoted) in [
        ("", r#""""#),
        ("a b", r#""a b""#),
        ("\"\\", r#""\"\\""#),
        ("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#),
        ("\0\x1f\x7f", r#""\x00\x1f\x7f""#),
        ("\u{80}\u{a0}\u{2028}\u{feff}\u{e000}", r#""\u0080\u00a0\u2028\ufeff\ue000""#),
        ("\u{10ffff}", r#""\U0010ffff""#),
        ("\u{600}\u{70f}\u{110bd}\u{1d173}", r#""\u0600\u070f\U000110bd\U0001d173""#),
        ("\u{378}\u{1fffe}", r#""\u0378\U0001fffe""#),
        ("日本語 é e\u{301} 🎉\u{e0100}", "\"日本語 é e\u{301} 🎉\u{e0100}\""),
    ] {
        assert_eq!(Quoted(text).to_string(), quoted);
    }
}

#[test]
fn a_list_says_each_text_once_and_brackets_several() {
    let path = FieldPath::new("f");
    let one = FieldError::required(&path, "");
    let two = FieldError::forbidden(&path, "no");
    let list = |errors: &[&FieldError]| errors.iter().map(|&error| error.clone()).collect::<FieldErrors>();
    assert_eq!(list(&[]).to_string(), "");
    assert_eq!(list(&[&one, &one]).to_string(), "f: Required value");
    assert_eq!(list(&[&one, &two, &one]).to_string(), "[f: Required value, f: Forbidden: no]");
    assert_eq!(list(&[&one, &one]).len(), 2);
    let nine: FieldErrors = (0..9).map(|index| FieldError::required(&path.index(index), "")).collect();
    assert!(nine.to_string().ends_with("f[7]: Required value and 1 more]"), "{nine}");
    assert!(nine.whole().ends_with("f[7]: Required value, f[8]: Required value]"), "{}", nine.whole());
    assert_eq!((nine.len(), (&nine).into_iter().count()), (9, 9));
    assert_eq!(list(&[]).into_result(), Ok(()));
    assert_eq!(list(&[&two]).into_result(), Err(list(&[&two])));
}

#[test]
fn an_error_on_the_wire_is_field_type_and_detail() {
    let error = FieldError::invalid(&FieldPath::new("f"), "v", "bad");
    let json = serde_json::json!({"field": "f", "type": "FieldValueInvalid", "detail": "bad"});
    assert_eq!(serde_json::to_value(&error).unwrap(), json);
    assert_eq!(serde_json::to_value(FieldErrors::from_iter([error])).unwrap(), serde_json::json!([json]));
}
