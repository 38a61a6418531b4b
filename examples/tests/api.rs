//! `docs/api.txt` lists what the libraries offer, a line an item, so that a change of the API is seen in review. The
//! test reads the sources; `UPDATE=1` writes the list anew.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, ItemEnum, ItemImpl, ItemMod, ItemStruct, ItemTrait, Meta, Visibility};

const LIBRARIES: [&str; 5] = ["dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What one crate offers. Items of a private module are reached by a re-export, or the compiler's lint
/// `unreachable_pub` would not be silent.
struct Api {
    lines: Vec<String>,
    /// The types of the file that are public.
    types: Vec<String>,
}

impl Api {
    fn of(library: &str) -> Self {
        let mut api = Self { lines: Vec::new(), types: Vec::new() };
        api.file(&library.replace('-', "_"), &root().join(library).join("src/lib.rs"));
        api.lines.sort();
        api
    }

    fn file(&mut self, module: &str, path: &Path) {
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs");
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.items(module, &folder, &file.items);
    }

    fn items(&mut self, module: &str, folder: &Path, items: &[Item]) {
        self.types = items.iter().filter_map(public_type).collect();
        let (inner, own): (Vec<_>, Vec<_>) = items.iter().partition(|item| matches!(item, Item::Mod(_)));
        for item in own.into_iter().chain(inner) {
            self.item(module, folder, item);
        }
    }

    fn item(&mut self, module: &str, folder: &Path, item: &Item) {
        match item {
            Item::Mod(inner) if !is_test(&inner.attrs) => self.module(module, folder, inner),
            Item::Struct(item) if is_public(&item.vis, &item.attrs) => self.structure(module, item),
            Item::Enum(item) if is_public(&item.vis, &item.attrs) => self.enumeration(module, item),
            Item::Trait(item) if is_public(&item.vis, &item.attrs) => self.interface(module, item),
            Item::Fn(item) if is_public(&item.vis, &item.attrs) => self.function(module, &item.sig),
            Item::Const(item) if is_public(&item.vis, &item.attrs) => {
                self.line(&format!("{module}::{}: const {}", item.ident, text(&item.ty)));
            }
            Item::Type(item) if is_public(&item.vis, &item.attrs) => {
                self.line(&format!("{module}::{}: type {}", item.ident, text(&item.ty)));
            }
            Item::Use(item) if is_public(&item.vis, &item.attrs) => {
                self.line(&format!("{module}: use {}", text(&item.tree)));
            }
            Item::Impl(item) => self.implementation(module, item),
            _ => {}
        }
    }

    fn module(&mut self, module: &str, folder: &Path, inner: &ItemMod) {
        let name = format!("{module}::{}", inner.ident);
        let folder = folder.join(inner.ident.to_string());
        match &inner.content {
            Some((_, items)) => self.items(&name, &folder, items),
            None if folder.join("mod.rs").exists() => self.file(&name, &folder.join("mod.rs")),
            None => self.file(&name, &folder.with_extension("rs")),
        }
    }

    fn structure(&mut self, module: &str, item: &ItemStruct) {
        let name = format!("{module}::{}", item.ident);
        self.line(&format!("{name}: struct{}{}", text(&item.generics), traits(&item.attrs)));
        self.fields(&name, &item.fields);
    }

    fn fields(&mut self, name: &str, fields: &Fields) {
        for (index, field) in fields.iter().enumerate() {
            if matches!(field.vis, Visibility::Public(_)) {
                let field_name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
                self.line(&format!("{name}.{field_name}: {}", text(&field.ty)));
            }
        }
    }

    fn enumeration(&mut self, module: &str, item: &ItemEnum) {
        let name = format!("{module}::{}", item.ident);
        self.line(&format!("{name}: enum{}{}", text(&item.generics), traits(&item.attrs)));
        for variant in &item.variants {
            self.line(&format!("{name}::{}{}", variant.ident, text(&variant.fields)));
        }
    }

    fn interface(&mut self, module: &str, item: &ItemTrait) {
        let name = format!("{module}::{}", item.ident);
        self.line(&format!("{name}: trait{}", text(&item.generics)));
        for item in &item.items {
            if let syn::TraitItem::Fn(function) = item {
                self.function(&name, &function.sig);
            }
        }
    }

    /// The public functions of a type, or the trait that it has.
    fn implementation(&mut self, module: &str, item: &ItemImpl) {
        let of = text(&item.self_ty);
        let name = of.split('<').next().unwrap_or_default().trim_start_matches('&');
        let is_private = !self.types.iter().any(|known| known == name);
        if let Some((_, interface, _)) = &item.trait_ {
            if !is_private {
                self.line(&format!("{module}: impl {} for {of}", text(interface)));
            }
            return;
        }
        for item in &item.items {
            match item {
                ImplItem::Fn(function) if is_public(&function.vis, &function.attrs) => {
                    self.function(&format!("{module}::{of}"), &function.sig);
                }
                ImplItem::Const(constant) if is_public(&constant.vis, &constant.attrs) => {
                    self.line(&format!("{module}::{of}::{}: const {}", constant.ident, text(&constant.ty)));
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, place: &str, signature: &syn::Signature) {
        self.line(&format!("{place}::{}: {}", signature.ident, text(signature)));
    }

    fn line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}

/// The name of a type that is for users.
fn public_type(item: &Item) -> Option<String> {
    let (visibility, attributes, name) = match item {
        Item::Struct(item) => (&item.vis, &item.attrs, &item.ident),
        Item::Enum(item) => (&item.vis, &item.attrs, &item.ident),
        _ => return None,
    };
    is_public(visibility, attributes).then(|| name.to_string())
}

/// Whether an item is for users.
fn is_public(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && !attributes.iter().any(is_hidden)
}

fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && text(&attribute.meta).contains("test"))
}

/// What is derived, and whether more may come.
fn traits(attributes: &[Attribute]) -> String {
    let lists = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let derived = lists.map(|attribute| text(&attribute.meta)).map(|derive| format!(" {derive}"));
    let open = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
    let derived: String = derived.collect();
    if open { format!("{derived} non_exhaustive") } else { derived }
}

/// The text of a part of the source, with spaces as one would write them.
fn text(part: &impl quote::ToTokens) -> String {
    let mut text = without_docs(&part.to_token_stream().to_string());
    for (from, to) in [
        (" :: ", "::"),
        ("& ", "&"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        ("( ", "("),
        (" (", "("),
        (" )", ")"),
        (" :", ":"),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
        ("' ", "'"),
        ("->(", "-> ("),
        (",)", ")"),
    ] {
        text = text.replace(from, to);
    }
    text.replace("->", " -> ").replace("  ", " ")
}

/// Without the attributes of fields.
fn without_docs(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("# [") {
        kept.push_str(before);
        rest = &after[end_of_brackets(after)..];
    }
    kept.push_str(rest);
    kept
}

/// Where the bracket ends that was opened before; texts in quotes are passed over.
fn end_of_brackets(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    text.len()
}

#[test]
fn the_api_is_the_listed_one() {
    let lines: Vec<String> = LIBRARIES.iter().flat_map(|library| Api::of(library).lines).collect();
    let api = lines.join("\n") + "\n";
    let path = root().join("docs/api.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &api).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    let differs = api.lines().zip(listed.lines()).find(|(now, listed)| now != listed);
    assert!(api == listed, "docs/api.txt is not what the sources say; UPDATE=1 rewrites it. First: {differs:?}");
}
