//! Errors of the libraries: an error within an error is reached by `source()`. The test reads the sources.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Field, Fields, Item, Type};

const LIBRARIES: [&str; 5] = ["dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus"];

/// Error types of other crates.
const FOREIGN: [&str; 1] = ["serde_json::Error"];

/// One variant of an error enum, or an error struct.
struct Variant<'i> {
    name: String,
    is_transparent: bool,
    fields: Vec<&'i Field>,
}

/// Returns the files of a folder and of its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the items of all libraries, except for those of modules within files.
fn items() -> Vec<Item> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let paths = LIBRARIES.iter().flat_map(|library| files(&root.join(library).join("src")));
    paths.flat_map(|path| syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items).collect()
}

fn is_error(attributes: &[Attribute]) -> bool {
    let text = |attribute: &Attribute| attribute.to_token_stream().to_string().replace(' ', "");
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("derive") && text(attribute).contains("thiserror::Error"))
}

fn variant<'i>(name: String, attributes: &[Attribute], fields: &'i Fields) -> Variant<'i> {
    let transparent = |attribute: &Attribute| {
        attribute.path().is_ident("error") && attribute.to_token_stream().to_string().contains("transparent")
    };
    Variant { name, is_transparent: attributes.iter().any(transparent), fields: fields.iter().collect() }
}

/// Returns the error types of the libraries, each with its variants. A struct counts as one variant.
fn errors(items: &[Item]) -> Vec<(String, Vec<Variant<'_>>)> {
    let errors = items.iter().filter_map(|item| match item {
        Item::Enum(item) if is_error(&item.attrs) => {
            let name = |variant: &syn::Variant| format!("{}::{}", item.ident, variant.ident);
            let variants = item.variants.iter().map(|inner| variant(name(inner), &inner.attrs, &inner.fields));
            Some((item.ident.to_string(), variants.collect()))
        }
        Item::Struct(item) if is_error(&item.attrs) => {
            Some((item.ident.to_string(), vec![variant(item.ident.to_string(), &item.attrs, &item.fields)]))
        }
        _ => None,
    });
    errors.collect()
}

/// Returns the name of a type without `Box<…>` and `Arc<…>` around it.
fn name_of(of: &Type) -> String {
    let mut name = of.to_token_stream().to_string().replace(' ', "");
    while let Some(inner) = ["Box<", "Arc<"].iter().find_map(|outer| name.strip_prefix(outer)?.strip_suffix('>')) {
        name = inner.to_owned();
    }
    name
}

fn is_source(field: &Field) -> bool {
    field.ident.as_ref().is_some_and(|name| name == "source")
        || field.attrs.iter().any(|attribute| attribute.path().is_ident("source") || attribute.path().is_ident("from"))
}

#[test]
fn inner_errors_are_sources() {
    let items = items();
    let errors = errors(&items);
    let mut names: BTreeSet<String> = errors.iter().map(|(name, _)| name.clone()).collect();
    names.extend(FOREIGN.map(str::to_owned));
    let (mut inner, mut hidden) = (0, Vec::new());
    for variant in errors.iter().flat_map(|(_, variants)| variants) {
        for field in variant.fields.iter().filter(|field| names.contains(&name_of(&field.ty))) {
            inner += 1;
            if !variant.is_transparent && !is_source(field) {
                let field = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                hidden.push(format!("{} {field}", variant.name));
            }
        }
    }
    assert!(inner > 20, "{inner} errors within errors were found");
    assert_eq!(hidden, Vec::<String>::new(), "name these fields `source`, or mark them with #[source]");
}
