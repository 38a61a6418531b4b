//! Layers of the library crates, held by their imports: a file may use its own room and rooms of lower layers. A room is
//! a folder or a file at the top of a crate's `src`. Files never import each other in a circle.
//!
//! The tests read `use` items and paths in code that begin with `crate`, `self`, `super` or a child module, and follow
//! re-exports to the file that defines the item. Tests inside of files do not count, nor do `mod` and `pub use` lines,
//! which make an item visible and use nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Item, Visibility};

/// Rooms of one crate, the lowest layer first. Rooms of one layer do not import each other.
type Layers = &'static [&'static [&'static str]];

const NNN: Layers = &[
    &["pod", "config"],
    &["nomination", "view", "memory"],
    &["commands"],
    &["scheduling", "binding", "external"],
    &["tracker"],
];

const READINESS: Layers = &[
    &["words"],
    &["condition", "policy"],
    &["taint", "gate_label", "reporter"],
    &["gate"],
    &["lookup", "pod"],
    &["node"],
    &["filter", "validate", "reconcile", "autoscaler"],
    &["network", "rule", "preview", "registration"],
];

const DRA_ALLOC: Layers = &[
    &["cluster"],
    &["search", "fit"],
    &["objective"],
    &["explain"],
    &["allocator"],
    &["pods"],
    &["claim_controller", "eviction", "preemption", "queue"],
    &["autoscaler"],
    &["consolidation", "superposition"],
];

/// Packages whose files must not import each other in a circle: all libraries.
const WITHOUT_CIRCLES: [&str; 9] = [
    "dra-attrs",
    "dra-alloc/device",
    "dra-alloc/selector",
    "dra-alloc/validate",
    "dra-alloc/node",
    "dra-alloc",
    "nnn",
    "poolstatus",
    "readiness",
];

/// Path of a module in its crate; the root is empty.
type ModulePath = Vec<String>;

/// One module: the names that it imports or exports, and the paths that its code uses.
#[derive(Default)]
struct Module {
    /// Module of the file, which is another one only for a module within a file.
    file: ModulePath,
    children: BTreeSet<String>,
    /// Paths that a `use` item of any visibility gives a name.
    names: BTreeMap<String, Vec<String>>,
    /// Paths that count as imports.
    uses: BTreeSet<Vec<String>>,
}

/// Modules of one crate, without tests.
struct Sources {
    modules: BTreeMap<ModulePath, Module>,
}

/// Files that each file imports, by the path of the module.
type Imports = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

impl Sources {
    fn read(library: &str) -> Self {
        let mut sources = Self { modules: BTreeMap::new() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(library).join("src/lib.rs");
        sources.read_file(&Vec::new(), &root);
        sources
    }

    fn read_file(&mut self, module: &ModulePath, path: &Path) {
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs");
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.read_items(module, module, &folder, &file.items);
    }

    fn read_items(&mut self, file: &ModulePath, module: &ModulePath, folder: &Path, items: &[Item]) {
        let items: Vec<&Item> = items.iter().filter(|item| !is_test(item)).collect();
        let children: BTreeSet<String> = items.iter().filter_map(|item| child_of(item)).collect();
        let mut contents = Module { file: file.clone(), children, ..Module::default() };
        for item in &items {
            match item {
                Item::Mod(_) => {}
                Item::Use(item) => {
                    let mut paths = Vec::new();
                    read_path(&tokens_of(&item.tree.to_token_stream().to_string()), 0, &[], &mut paths);
                    if matches!(item.vis, Visibility::Inherited) {
                        contents.uses.extend(paths.iter().map(|(_, path)| path.clone()));
                    }
                    contents.names.extend(paths);
                }
                item => {
                    let tokens = tokens_of(&item.to_token_stream().to_string());
                    contents.uses.extend(paths_of(&tokens, &contents.children));
                }
            }
        }
        self.modules.insert(module.clone(), contents);
        for item in items {
            if let Item::Mod(inner) = item {
                self.read_child(file, module, folder, inner);
            }
        }
    }

    fn read_child(&mut self, file: &ModulePath, module: &ModulePath, folder: &Path, inner: &syn::ItemMod) {
        let name = inner.ident.to_string();
        let child: ModulePath = [module.as_slice(), std::slice::from_ref(&name)].concat();
        let folder = folder.join(&name);
        match &inner.content {
            Some((_, items)) => self.read_items(file, &child, &folder, items),
            None if folder.join("mod.rs").exists() => self.read_file(&child, &folder.join("mod.rs")),
            None => self.read_file(&child, &folder.with_extension("rs")),
        }
    }

    /// Returns the module that defines what `path` names in `module`; `None` for an item of another crate.
    fn locate(&self, module: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let (mut at, mut rest) = (module.clone(), path);
        let mut is_inside = false;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            (rest, is_inside) = (others, true);
        }
        while let Some((first, others)) = rest.split_first() {
            let contents = self.modules.get(&at)?;
            if contents.children.contains(first) {
                at.push(first.clone());
            } else if let Some(target) = contents.names.get(first).filter(|_| depth > 0) {
                return self.locate(&at, &[target.as_slice(), others].concat(), depth - 1);
            } else {
                return is_inside.then_some(at);
            }
            (rest, is_inside) = (others, true);
        }
        Some(at)
    }

    /// Returns the files that each file imports. The root of the crate imports nothing, it only shows what others
    /// define.
    fn imports(&self) -> Imports {
        let mut imports: Imports = self.modules.values().map(|module| (module.file.clone(), BTreeSet::new())).collect();
        for (path, module) in self.modules.iter().filter(|(_, module)| !module.file.is_empty()) {
            let targets = module.uses.iter().filter_map(|used| self.locate(path, used, 8));
            let files = targets.map(|target| self.modules[&target].file.clone()).filter(|file| *file != module.file);
            imports.get_mut(&module.file).unwrap().extend(files);
        }
        imports
    }
}

/// Returns true for an item that is compiled for tests only.
fn is_test(item: &Item) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.meta.to_token_stream().to_string().contains("test")
    };
    matches!(item, Item::Mod(item) if item.attrs.iter().any(is_test))
}

fn child_of(item: &Item) -> Option<String> {
    match item {
        Item::Mod(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// Splits code into names, `::`, and single signs. A text is a token in quotes; lifetimes and characters are left out.
fn tokens_of(code: &str) -> Vec<String> {
    let characters: Vec<char> = code.chars().collect();
    let is_word = |at: usize| characters.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(&character) = characters.get(at) {
        let begin = at;
        at += 1;
        match character {
            '"' => {
                while characters.get(at).is_some_and(|c| *c != '"') {
                    at += if characters[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
                tokens.push(characters[begin..at.min(characters.len())].iter().collect());
            }
            '\'' if characters.get(at) == Some(&'\\') || characters.get(at + 1) == Some(&'\'') => {
                at += 2;
                while characters.get(at - 1).is_some_and(|c| *c != '\'') {
                    at += 1;
                }
            }
            ':' if characters.get(at) == Some(&':') => {
                at += 1;
                tokens.push("::".to_owned());
            }
            _ if is_word(begin) => {
                while is_word(at) {
                    at += 1;
                }
                tokens.push(characters[begin..at].iter().collect());
            }
            c if c.is_whitespace() => {}
            c => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// Returns the paths in code that lead into the crate. Texts in attributes count (`#[serde(with = "crate::gate")]`).
fn paths_of(tokens: &[String], children: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let text = token.trim_matches('"');
        let is_inside = matches!(token.as_str(), "crate" | "super" | "self") || children.contains(token);
        let begins = at == 0 || tokens[at - 1] != "::";
        if token.starts_with("\"crate::") && text.chars().all(|c| c.is_alphanumeric() || "_:".contains(c)) {
            paths.push((text.to_owned(), text.split("::").map(str::to_owned).collect()));
        } else if is_inside && begins && tokens.get(at + 1).is_some_and(|next| next == "::") {
            at = read_path(tokens, at, &[], &mut paths);
            continue;
        }
        at += 1;
    }
    paths.into_iter().map(|(_, path)| path).collect()
}

/// Reads a path, which may end in a group, and returns the position after it. Each path gets the name that a `use` item
/// gives it.
fn read_path(tokens: &[String], begin: usize, before: &[String], paths: &mut Vec<(String, Vec<String>)>) -> usize {
    let (mut at, mut path) = (begin, before.to_vec());
    loop {
        let Some(token) = tokens.get(at) else { return at };
        match token.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = read_path(tokens, at, &path, paths);
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                }
                return at + 1;
            }
            // Generic arguments in an expression, or a glob.
            "<" | "*" => {
                paths.push((String::new(), path));
                return at;
            }
            name => {
                if name != "self" || path.is_empty() {
                    path.push(name.to_owned());
                }
                at += 1;
            }
        }
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if tokens.get(at).is_some_and(|token| token == "as") {
        name.clone_from(&tokens[at + 1]);
        at += 2;
    }
    paths.push((name, path));
    at
}

/// Writes a module as the name of its file, without the ending.
fn shown(module: &ModulePath) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("/") }
}

fn room_of(module: &ModulePath) -> &str {
    module.first().map_or("lib", String::as_str)
}

/// Lists the imports that do not go down, and the rooms that the table does not have.
fn violations(imports: &Imports, layers: &[&[&str]]) -> Vec<String> {
    let layer = |file: &ModulePath| layers.iter().position(|rooms| rooms.contains(&room_of(file)));
    let mut found = Vec::new();
    for (file, targets) in imports.iter().filter(|(file, _)| !file.is_empty()) {
        if layer(file).is_none() {
            found.push(format!("{} is in no room of the table", shown(file)));
        }
        for target in targets.iter().filter(|target| room_of(target) != room_of(file)) {
            if layer(target) >= layer(file) {
                found.push(format!("{} imports {}", shown(file), shown(target)));
            }
        }
    }
    found
}

/// Returns the files that a file imports, and those that they import in turn.
fn reachable(imports: &Imports, from: &ModulePath) -> BTreeSet<ModulePath> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for target in imports.get(file).into_iter().flatten() {
            if seen.insert(target.clone()) {
                open.push(target);
            }
        }
    }
    seen
}

/// Returns the circles of a crate: sets of files each of which reaches all others by imports.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<ModulePath>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        imports.keys().map(|file| (file, reachable(imports, file))).collect();
    let circle = |file: &ModulePath| -> BTreeSet<ModulePath> {
        reached[file].iter().filter(|other| reached[other].contains(file)).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// Lists the imports inside of circles.
fn circular_imports(imports: &Imports) -> Vec<String> {
    let inside = |circle: &BTreeSet<ModulePath>| -> Vec<String> {
        let edges = circle.iter().flat_map(|file| imports[file].intersection(circle).map(move |to| (file, to)));
        edges.map(|(file, target)| format!("{} imports {}", shown(file), shown(target))).collect()
    };
    circles(imports).iter().flat_map(inside).collect()
}

fn assert_layers(library: &str, layers: Layers) {
    let found = violations(&Sources::read(library).imports(), layers);
    assert!(found.is_empty(), "{library}: {} imports against the layers:\n{}", found.len(), found.join("\n"));
}

#[test]
fn imports_of_nnn_go_down() {
    assert_layers("nnn", NNN);
}

#[test]
fn imports_of_readiness_go_down() {
    assert_layers("readiness", READINESS);
}

#[test]
fn imports_of_dra_alloc_go_down() {
    assert_layers("dra-alloc", DRA_ALLOC);
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    for library in WITHOUT_CIRCLES {
        let found = circular_imports(&Sources::read(library).imports());
        assert!(found.is_empty(), "{library}: {} imports in circles:\n{}", found.len(), found.join("\n"));
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let folder = std::env::temp_dir().join(format!("layers-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path: PathBuf = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod low; mod high; mod alone; pub use high::High; pub use std::fmt::Debug as Shown;");
    write("low/mod.rs", "//! [`crate::high::High`]\nmod a; mod b; pub use a::{A, One as Uno}; pub(crate) use b::b;");
    write("low/a.rs", "pub struct A; pub struct One; use super::b; fn f() -> char { b::b(); '\"' }");
    write("low/b.rs", "pub fn b() { crate::low::Uno; } #[cfg(test)] mod tests { use crate::high::High; }");
    write("high.rs", "use crate::{low::{self, A as First}, Shown}; pub struct High; mod inner { use super::High; }");
    write("alone.rs", "#[serde(with = \"crate::low::b\")] pub struct Alone; use std::{fmt, low::A};");
    let mut sources = Sources { modules: BTreeMap::new() };
    sources.read_file(&Vec::new(), &folder.join("lib.rs"));
    fs::remove_dir_all(&folder).unwrap();
    let imports = sources.imports();
    let listed: Vec<String> = imports
        .iter()
        .flat_map(|(file, targets)| targets.iter().map(move |target| format!("{} {}", shown(file), shown(target))))
        .collect();
    assert_eq!(listed, ["alone low/b", "high low", "high low/a", "low/a low/b", "low/b low/a"]);
    assert_eq!(circular_imports(&imports), ["low/a imports low/b", "low/b imports low/a"]);
    assert_eq!(violations(&imports, &[&["low"], &["high", "alone"]]), [""; 0]);
    assert_eq!(violations(&imports, &[&["high"], &["low", "alone"]]).len(), 3);
    assert_eq!(
        violations(&imports, &[&["low"], &["high"]]),
        ["alone is in no room of the table", "alone imports low/b"]
    );
}
