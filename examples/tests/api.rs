//! `docs/api.txt` lists the public API of the libraries, a line an item, under the paths that users write: re-exports
//! are resolved, private modules do not appear. A change of the API is so seen in review. The test reads the sources;
//! `UPDATE=1` writes the list anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, Meta, UseTree, Visibility};

const LIBRARIES: [&str; 5] = ["dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus"];

/// Largest number of public modules in all libraries together.
const MAX_PUBLIC_MODULES: usize = 40;

/// Names of fields, arguments and functions that are a `usize`: counts and limits. A position is an `Index<T>`.
const COUNTS: [&str; 62] = [
    "affected",
    "allocated",
    "allocations",
    "alternatives",
    "by_namespace",
    "by_time",
    "capacities",
    "capacity",
    "claim_count",
    "claimed",
    "claims",
    "closing",
    "complete",
    "consumers",
    "count",
    "device_count",
    "devices",
    "divisor",
    "failed_states",
    "filter_rounds",
    "filter_runs",
    "fitting",
    "found",
    "free",
    "gates_off",
    "in_use",
    "left",
    "left_out",
    "len",
    "length",
    "limit",
    "line",
    "lists_off",
    "matching_pools",
    "max",
    "max_advanced_devices",
    "max_counter_sets",
    "max_devices",
    "most",
    "nodes",
    "number_of_nodes",
    "observed",
    "of_class",
    "opening",
    "parallelism",
    "pools",
    "published",
    "refuted",
    "risky",
    "rounds",
    "saturate_times",
    "scheduled_in_group",
    "slice_count",
    "slices",
    "tainted",
    "taints_to_add",
    "taints_to_remove",
    "terms",
    "total",
    "unavailable",
    "usable",
    "wanted",
];

/// The one position that is a number: paths of fields are texts, and name items of lists of any kind.
const INDEX_OF_A_PATH: &str = "dra_attrs::FieldPath::index:";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path of a module in its crate; the root is empty.
type ModulePath = Vec<String>;

/// Contents of one module that a user may reach.
#[derive(Default)]
struct Module {
    /// Public items by name; each line continues the path of the item.
    items: BTreeMap<String, Vec<String>>,
    /// Public child modules.
    children: BTreeSet<String>,
    /// Public re-exports: the name in this module, and the path that it stands for.
    exports: Vec<(String, Vec<String>)>,
    /// Traits and functions of types, which may be defined in another module.
    implementations: Vec<(String, Vec<String>)>,
}

/// All modules of one crate, private ones included.
struct Crate {
    name: String,
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    fn read(library: &str) -> Self {
        let mut api = Self { name: library.replace('-', "_"), modules: BTreeMap::new() };
        api.read_file(&Vec::new(), &root().join(library).join("src/lib.rs"));
        api.attach_implementations();
        api
    }

    fn read_file(&mut self, module: &ModulePath, path: &Path) {
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs");
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.read_items(module, &folder, &file.items);
    }

    fn read_items(&mut self, module: &ModulePath, folder: &Path, items: &[Item]) {
        self.modules.entry(module.clone()).or_default();
        for item in items {
            self.read_item(module, folder, item);
        }
    }

    fn read_item(&mut self, module: &ModulePath, folder: &Path, item: &Item) {
        if let Item::Mod(inner) = item {
            if is_test(&inner.attrs) {
                return;
            }
            let name = inner.ident.to_string();
            if is_public(&inner.vis, &inner.attrs) {
                self.module(module).children.insert(name.clone());
            }
            let child = below(module, &name);
            let folder = folder.join(&name);
            match &inner.content {
                Some((_, items)) => self.read_items(&child, &folder, items),
                None if folder.join("mod.rs").exists() => self.read_file(&child, &folder.join("mod.rs")),
                None => self.read_file(&child, &folder.with_extension("rs")),
            }
            return;
        }
        let module = self.module(module);
        match item {
            Item::Use(item) if is_public(&item.vis, &item.attrs) => flatten(&item.tree, &[], &mut module.exports),
            Item::Impl(item) => module.implementations.extend(implementation(item)),
            item => {
                if let Some((name, lines)) = listed(item) {
                    module.items.insert(name, lines);
                }
            }
        }
    }

    fn module(&mut self, path: &ModulePath) -> &mut Module {
        self.modules.entry(path.clone()).or_default()
    }

    /// Moves what implementations say to the type that they are for: the one of the name in the same module, or else
    /// the only one of the crate.
    fn attach_implementations(&mut self) {
        let paths: Vec<ModulePath> = self.modules.keys().cloned().collect();
        for path in paths {
            for (name, lines) in std::mem::take(&mut self.module(&path).implementations) {
                let defines = |module: &&ModulePath| self.modules[*module].items.contains_key(&name);
                let home = self.modules.keys().filter(defines).max_by_key(|module| **module == path).cloned();
                if let Some(home) = home {
                    self.module(&home).items.get_mut(&name).unwrap().extend(lines);
                }
            }
        }
    }

    /// Lists everything that is reachable from a module, under its public path.
    fn list(&self, module: &ModulePath, public: &str, lines: &mut Vec<String>) {
        let contents = &self.modules[module];
        for (name, own) in &contents.items {
            lines.extend(own.iter().map(|line| format!("{public}::{name}{line}")));
        }
        for child in &contents.children {
            self.list(&below(module, child), &format!("{public}::{child}"), lines);
        }
        for (name, target) in &contents.exports {
            self.list_export(module, target, &format!("{public}::{name}"), lines);
        }
    }

    fn list_export(&self, module: &ModulePath, target: &[String], public: &str, lines: &mut Vec<String>) {
        let target = absolute(module, target);
        if self.modules.contains_key(&target) {
            return self.list(&target, public, lines);
        }
        let (name, home) = target.split_last().unwrap();
        let Some(home_module) = self.modules.get(home) else {
            return lines.push(format!("{public}: use {}", target.join("::")));
        };
        if let Some(own) = home_module.items.get(name) {
            return lines.extend(own.iter().map(|line| format!("{public}{line}")));
        }
        let onward = home_module.exports.iter().find(|(exported, _)| exported == name);
        match onward {
            Some((_, target)) => self.list_export(&home.to_vec(), target, public, lines),
            None if home.is_empty() => lines.push(format!("{public}: use {}", target.join("::"))),
            // Hidden items are public for the project's own tests only.
            None => {}
        }
    }
}

/// Returns the path of a child module.
fn below(module: &ModulePath, child: &str) -> ModulePath {
    module.iter().map(String::as_str).chain([child]).map(str::to_owned).collect()
}

/// Resolves `self`, `super` and `crate` in the path of a re-export.
fn absolute(module: &ModulePath, target: &[String]) -> ModulePath {
    let mut base = module.clone();
    let mut rest = target;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "self" => {}
            "super" => drop(base.pop()),
            "crate" => base.clear(),
            _ => break,
        }
        rest = others;
    }
    base.extend(rest.iter().cloned());
    base
}

/// Lists the names of a `use` tree with their paths.
fn flatten(tree: &UseTree, before: &[String], exports: &mut Vec<(String, Vec<String>)>) {
    let with = |name: String| [before, &[name]].concat();
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(path.ident.to_string()), exports),
        UseTree::Name(name) => exports.push((name.ident.to_string(), with(name.ident.to_string()))),
        UseTree::Rename(rename) => exports.push((rename.rename.to_string(), with(rename.ident.to_string()))),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, exports)),
        UseTree::Glob(_) => panic!("a glob in a public re-export hides what is exported"),
    }
}

/// Returns the name and the lines of a public item that is not a module, a re-export or an implementation.
fn listed(item: &Item) -> Option<(String, Vec<String>)> {
    let (visibility, attributes) = match item {
        Item::Struct(item) => (&item.vis, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.attrs),
        Item::Const(item) => (&item.vis, &item.attrs),
        Item::Type(item) => (&item.vis, &item.attrs),
        _ => return None,
    };
    if !is_public(visibility, attributes) {
        return None;
    }
    let named = |ident: &syn::Ident, line: String| (ident.to_string(), vec![line]);
    Some(match item {
        Item::Struct(item) => {
            let (name, mut lines) =
                named(&item.ident, format!(": struct{}{}", text(&item.generics), traits(&item.attrs)));
            lines.extend(fields(&item.fields));
            (name, lines)
        }
        Item::Enum(item) => {
            let (name, mut lines) =
                named(&item.ident, format!(": enum{}{}", text(&item.generics), traits(&item.attrs)));
            let variants = item.variants.iter();
            lines.extend(variants.map(|variant| format!("::{}{}", variant.ident, text(&variant.fields))));
            (name, lines)
        }
        Item::Trait(item) => {
            let (name, mut lines) = named(&item.ident, format!(": trait{}", text(&item.generics)));
            for item in &item.items {
                match item {
                    syn::TraitItem::Fn(function) => lines.push(signature(&function.sig)),
                    syn::TraitItem::Const(constant) => {
                        lines.push(format!("::{}: const {}", constant.ident, text(&constant.ty)));
                    }
                    _ => {}
                }
            }
            (name, lines)
        }
        Item::Fn(item) => named(&item.sig.ident, format!(": {}", text(&item.sig))),
        Item::Const(item) => named(&item.ident, format!(": const {}", text(&item.ty))),
        Item::Type(item) => named(&item.ident, format!(": type {}", text(&item.ty))),
        _ => return None,
    })
}

fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().enumerate().filter(|(_, field)| matches!(field.vis, Visibility::Public(_)));
    let line = |(index, field): (usize, &syn::Field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        format!(".{name}: {}", text(&field.ty))
    };
    public.map(line).collect()
}

/// Returns the type of an implementation, and its trait or its public functions and constants.
fn implementation(item: &ItemImpl) -> Option<(String, Vec<String>)> {
    let syn::Type::Path(path) = &*item.self_ty else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    if let Some((_, interface, _)) = &item.trait_ {
        return Some((name, vec![format!(": impl {}", text(interface))]));
    }
    let lines = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) if is_public(&function.vis, &function.attrs) => Some(signature(&function.sig)),
        ImplItem::Const(constant) if is_public(&constant.vis, &constant.attrs) => {
            Some(format!("::{}: const {}", constant.ident, text(&constant.ty)))
        }
        _ => None,
    });
    Some((name, lines.collect()))
}

fn signature(signature: &syn::Signature) -> String {
    format!("::{}: {}", signature.ident, text(signature))
}

/// Returns true if an item is for users: public and not hidden.
fn is_public(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && !attributes.iter().any(is_hidden)
}

fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && text(&attribute.meta).contains("test"))
}

/// Lists the derived traits, and `non_exhaustive`.
fn traits(attributes: &[Attribute]) -> String {
    let lists = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let derived = lists.map(|attribute| text(&attribute.meta)).map(|derive| format!(" {derive}"));
    let open = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
    let derived: String = derived.collect();
    if open { format!("{derived} non_exhaustive") } else { derived }
}

/// Prints a part of the source, with spaces as one would write them.
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

/// Removes the attributes of fields.
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

/// Returns the end of the bracket that was opened before. Texts in quotes are skipped.
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

/// Returns the public API of all libraries, sorted.
fn listing() -> Vec<String> {
    let mut lines = Vec::new();
    for library in LIBRARIES {
        let api = Crate::read(library);
        api.list(&Vec::new(), &api.name, &mut lines);
    }
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn the_api_is_the_listed_one() {
    let api = listing().join("\n") + "\n";
    let path = root().join("docs/api.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &api).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    let differs = api.lines().zip(listed.lines()).find(|(now, listed)| now != listed);
    assert!(api == listed, "docs/api.txt is not what the sources say; UPDATE=1 rewrites it. First: {differs:?}");
}

/// Returns the names that a line of the listing gives to values of type `usize`.
fn numbers(line: &str) -> Vec<&str> {
    let last_word = |text: &'_ str| -> usize {
        text.rfind(|character: char| !character.is_alphanumeric() && character != '_').map_or(0, |before| before + 1)
    };
    let (path, _) = line.split_once(": ").unwrap_or((line, ""));
    let item = &path[last_word(path)..];
    let parts: Vec<&str> = line.split("usize").collect();
    let named = parts[..parts.len() - 1].iter().map(|before| {
        let before = before.strip_suffix("Option<").unwrap_or(before);
        let name = before.strip_suffix(": ").map(|before| &before[last_word(before)..]);
        name.filter(|name| !name.is_empty()).unwrap_or(item)
    });
    named.collect()
}

#[test]
fn positions_are_typed() {
    let listing = listing();
    let is_other = |line: &&String| line.contains(": const usize") || line.contains(": impl ");
    let lines = listing.iter().filter(|line| !line.starts_with(INDEX_OF_A_PATH) && !is_other(line));
    let (mut found, mut others) = (0, Vec::new());
    for line in lines {
        let names = numbers(line);
        found += names.len();
        others.extend(names.iter().filter(|name| !COUNTS.contains(name)).map(|name| format!("{name} in {line}")));
    }
    assert!(found > 60, "{found}");
    assert_eq!(others, Vec::<String>::new(), "a position is an `Index<T>`; the name of a count goes into COUNTS");
}

#[test]
fn numbers_are_found_by_their_names() {
    assert_eq!(numbers("a::T.total: usize"), ["total"]);
    assert_eq!(numbers("a::T::V{ first: u8, index: Option<usize>, len: usize, }"), ["index", "len"]);
    assert_eq!(numbers("a::T::f: fn f(&self, at: usize) -> usize"), ["at", "f"]);
    assert_eq!(numbers("a::T::in_use: fn in_use(&self) -> BTreeMap<&str, usize>"), ["in_use"]);
}

#[test]
fn public_modules_are_few() {
    let modules = LIBRARIES.iter().map(|library| Crate::read(library));
    let doors: usize = modules.map(|api| api.modules.values().map(|module| module.children.len()).sum::<usize>()).sum();
    assert!(doors <= MAX_PUBLIC_MODULES, "{doors} public modules, more than {MAX_PUBLIC_MODULES}");
}
