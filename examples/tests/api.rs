//! The public API of the libraries: `docs/api.txt` lists it, a line an item, as rustdoc sees it (`.ci/release listing`), so
//! that a change of the API is seen in review. The tests read the listing, and the sources where it has no names of arguments.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, UseTree, Visibility};

/// Libraries by name, each with its folder.
const LIBRARIES: [(&str, &str); 9] = [
    ("dra_attrs", "dra-attrs"),
    ("dra_device", "dra-alloc/device"),
    ("dra_selector", "dra-alloc/selector"),
    ("dra_validate", "dra-alloc/validate"),
    ("dra_node", "dra-alloc/node"),
    ("dra_alloc", "dra-alloc"),
    ("nnn", "nnn"),
    ("readiness", "readiness"),
    ("poolstatus", "poolstatus"),
];

/// Largest number of public modules in all libraries together.
const MAX_PUBLIC_MODULES: usize = 40;

/// Largest number of public items at the top level of a module, and of lines of the listing. It had 3,000 lines before objectives,
/// preemption and terms of selectors.
const MAX_ITEMS: usize = 641;
const MAX_LINES: usize = 3_736;

/// Largest number of items that the packages show each other in their hidden modules `internal`.
const MAX_INTERNAL: usize = 40;

/// Items that nobody names outside of their package but a test, a fuzz target, or the type that has them; each with the
/// reason why it stays.
const WITHOUT_USER: [(&str, &str); 5] = [
    ("dra_attrs::numa::NumaValueError", "error of a value that the packages of the family parse"),
    ("dra_attrs::numa::CpuSetError", "error of a text that is parsed"),
    ("dra_node::kubelet::NodeOperation", "bound of the parameter of a plan"),
    ("dra_alloc::capacity::Rounding", "compared with Kubernetes' own table"),
    ("dra_alloc::claim_controller::QueueKeyError", "error of a text that is parsed"),
];

/// Names of fields, arguments and functions that are a `usize`: counts and limits. A position is an `Index<T>`.
const COUNTS: [&str; 82] = [
    "advanced_devices",
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
    "combinations",
    "complete",
    "consumed",
    "consumers",
    "count",
    "counters",
    "device_count",
    "devices",
    "divisor",
    "errors",
    "failed_states",
    "fails",
    "filter_rounds",
    "filter_runs",
    "fitting",
    "found",
    "free",
    "gates_off",
    "holds",
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
    "members",
    "missing",
    "most",
    "nodes",
    "number_of_nodes",
    "observe",
    "observed",
    "of_class",
    "of_device",
    "opening",
    "others",
    "parallelism",
    "pools",
    "published",
    "quorum",
    "refuted",
    "remembered",
    "risky",
    "rounds",
    "saturate_times",
    "scheduled_in_group",
    "sets",
    "shared",
    "slice_count",
    "slices",
    "tainted",
    "taints",
    "taints_to_add",
    "taints_to_remove",
    "terms",
    "total",
    "unavailable",
    "usable",
    "values",
    "violations",
    "wake",
    "wanted",
];

/// Positions that are numbers: paths of fields are texts, and name items of lists of any kind.
const INDEX: [&str; 2] = ["index: const fn index(&self, index: usize)", "number: usize"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn listing() -> Vec<String> {
    fs::read_to_string(root().join("docs/api.txt")).unwrap().lines().map(str::to_owned).collect()
}

/// A public item at the top level of a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    path: String,
    kind: String,
}

impl Listed {
    /// Reads a line of the listing; `None` for fields, variants, functions of types and implementations.
    fn read(line: &str) -> Option<Self> {
        let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line).strip_prefix("pub ")?;
        let line = line.strip_prefix("const fn ").map_or_else(|| line.to_owned(), |rest| format!("fn {rest}"));
        let (kind, rest) = line.split_once(' ')?;
        if !["struct", "enum", "trait", "fn", "const", "type"].contains(&kind) {
            return None;
        }
        let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != ':').unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches(':');
        let (module, _) = path.rsplit_once("::")?;
        // A function of a type with parameters: its path goes on behind them.
        let is_method = kind == "fn" && path.rsplit("::").next()?.starts_with(char::is_uppercase);
        let is_of_module =
            !is_method && module.split("::").all(|part| part.chars().next().is_some_and(char::is_lowercase));
        is_of_module.then(|| Self { path: path.to_owned(), kind: kind.to_owned() })
    }

    fn name(&self) -> &str {
        self.path.rsplit("::").next().unwrap()
    }

    fn library(&self) -> &str {
        self.path.split("::").next().unwrap()
    }
}

fn items() -> Vec<Listed> {
    let is_own = |item: &Listed| LIBRARIES.iter().any(|(library, _)| *library == item.library());
    listing().iter().filter_map(|line| Listed::read(line)).filter(is_own).collect()
}

/// Sources of a folder, without those below `tests` and `target`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "target"].contains(&name.as_str()) {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the words of code, without those of comments.
fn words(code: &str) -> BTreeSet<String> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(|line| line.split(|sign: char| !sign.is_alphanumeric() && sign != '_')).map(str::to_owned).collect()
}

fn words_of(folders: &[&str]) -> BTreeSet<String> {
    let files = folders.iter().flat_map(|folder| sources(&root().join(folder)));
    files.flat_map(|file| words(&fs::read_to_string(file).unwrap())).collect()
}

/// Returns the words in the examples and in the code of the pages for users.
fn words_of_pages() -> BTreeSet<String> {
    let pages = [
        "concepts",
        "compare",
        "embedding",
        "for-driver-authors",
        "for-scheduler-authors",
        "live",
        "replay",
        "simulation",
        "versions",
    ];
    let pages = pages.iter().map(|page| root().join(format!("docs/{page}.md"))).chain([root().join("README.md")]);
    pages.flat_map(|page| words_in_backticks(&fs::read_to_string(page).unwrap())).collect()
}

fn words_in_backticks(page: &str) -> BTreeSet<String> {
    page.split('`').skip(1).step_by(2).flat_map(words).collect()
}

#[test]
fn the_api_is_small() {
    let (items, lines) = (items().len(), listing().len());
    assert!(items <= MAX_ITEMS && lines <= MAX_LINES, "{items} items, {lines} lines");
    // Each is public, or it could not be shown to another package.
    let internal: usize = LIBRARIES
        .iter()
        .map(|(_, folder)| root().join(folder).join("src/internal.rs"))
        .filter(|file| file.exists())
        .map(|file| exports(&syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap().items).len())
        .sum();
    assert!((20..=MAX_INTERNAL).contains(&internal), "{internal} items");
    let modules = listing().iter().filter(|line| line.starts_with("pub mod ")).count();
    assert!(modules - LIBRARIES.len() <= MAX_PUBLIC_MODULES, "{modules} public modules");
}

/// The listing is written where rustdoc's JSON can be had. Elsewhere this sees that it has what the roots show.
#[test]
fn the_listing_has_what_the_roots_show() {
    let listing = listing();
    for (library, folder) in LIBRARIES {
        let root = syn::parse_file(&fs::read_to_string(root().join(folder).join("src/lib.rs")).unwrap()).unwrap();
        let shown: BTreeSet<String> = exports(&root.items).into_iter().filter(|name| name != "internal").collect();
        let start = format!("{library}::");
        let listed: BTreeSet<String> = listing
            .iter()
            .filter(|line| !line.starts_with("impl"))
            .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix(&start)))
            .map(|rest| rest.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next().unwrap().to_owned())
            .collect();
        let differ: Vec<&String> = shown.symmetric_difference(&listed).collect();
        assert!(differ.is_empty(), "docs/api.txt is old, or {library} shows an item of a private module: {differ:?}");
    }
}

/// Returns the names that items of a file show to others.
/// Returns the variants of the enums in the listing, by the names of the enums.
fn listed_variants() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in listing() {
        let Some(path) = line.strip_prefix("pub ").and_then(|rest| rest.split([' ', '(']).next()) else { continue };
        let is_type = |name: &&str| name.starts_with(char::is_uppercase);
        if let [.., of, variant] = path.split("::").collect::<Vec<_>>()[..]
            && is_type(&of)
            && is_type(&variant)
        {
            found.entry(of.to_owned()).or_default().insert(variant.to_owned());
        }
    }
    found
}

#[test]
fn the_listing_has_all_variants() {
    let mut written: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    for file in LIBRARIES.iter().flat_map(|(_, folder)| sources(&root().join(folder).join("src"))) {
        for item in syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap().items {
            if let Item::Enum(item) = item {
                let variants = item.variants.iter().map(|variant| variant.ident.to_string()).collect();
                written.entry(item.ident.to_string()).or_default().push(variants);
            }
        }
    }
    let listed = listed_variants();
    for (name, variants) in &listed {
        // A few enums of releases are made by a macro.
        let is_as_written = written.get(name).is_none_or(|all| all.contains(variants));
        assert!(is_as_written, "docs/api.txt is old: enum {name} has other variants ({:?})", written.get(name));
    }
    let by_macro = listed.keys().filter(|name| !written.contains_key(*name)).count();
    assert!(by_macro < 5, "{by_macro} of {} enums are not found", listed.len());
}

fn exports(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        match item {
            Item::Use(item) if is_public(&item.vis) => flatten(&item.tree, &mut names),
            Item::Mod(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Fn(item) if is_public(&item.vis) => names.push(item.sig.ident.to_string()),
            Item::Struct(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            _ => {}
        }
    }
    names
}

fn flatten(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => flatten(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, names)),
        UseTree::Glob(_) => panic!("a glob in a public re-export hides what is exported"),
    }
}

const fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[test]
fn names_are_unique() {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in items().into_iter().filter(|item| ["struct", "enum", "trait", "type"].contains(&item.kind.as_str())) {
        paths.entry(item.name().to_owned()).or_default().push(item.path);
    }
    paths.retain(|_, paths| paths.len() > 1);
    assert_eq!(paths, BTreeMap::new(), "a name stands for one thing, and a thing has one path");
}

#[test]
fn every_item_has_a_user() {
    let programs = words_of(&["examples/src", "examples/live/src", "benches"]);
    let pages = words_of_pages();
    let libraries: BTreeMap<&str, BTreeSet<String>> =
        LIBRARIES.iter().map(|(library, folder)| (*library, words_of(&[&format!("{folder}/src")]))).collect();
    let listing = listing();
    let has_user = |item: &Listed| {
        let name = item.name();
        let others = libraries.iter().filter(|(library, _)| **library != item.library());
        // A type that others have in a field or a signature is named by nobody who uses it.
        let is_reached = || listing.iter().any(|line| !line.contains(&format!("{}::", item.path)) && names(line, item));
        programs.contains(name)
            || pages.contains(name)
            || others.into_iter().any(|(_, words)| words.contains(name))
            || is_reached()
    };
    let without: Vec<String> = items().iter().filter(|item| !has_user(item)).map(|item| item.path.clone()).collect();
    let known: Vec<&str> = WITHOUT_USER.iter().map(|(path, _)| *path).collect();
    assert_eq!(without, known, "left: has no user; right: is known to have none");
}

/// Returns true if a line of the listing, which is not the item's own, has the item in a signature.
fn names(line: &str, item: &Listed) -> bool {
    let is_end = |rest: &str| rest.chars().next().is_none_or(|sign| !sign.is_alphanumeric() && sign != '_');
    let own = Listed::read(line).is_some_and(|listed| listed.path == item.path);
    !own && !line.starts_with("impl") && line.split(item.name()).skip(1).any(is_end)
}

/// Public functions and fields of the sources, as `name: signature`, and the types that are errors.
#[derive(Default)]
struct Sources {
    lines: Vec<String>,
    errors: Vec<String>,
}

impl Sources {
    fn read() -> Self {
        let mut read = Self::default();
        for file in LIBRARIES.iter().flat_map(|(_, folder)| sources(&root().join(folder).join("src"))) {
            read.add(&syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap().items);
        }
        read
    }

    fn add(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Fn(item) if is_public(&item.vis) => self.lines.push(signature(&item.sig)),
                Item::Struct(item) if is_public(&item.vis) => {
                    self.add_type(&item.ident, &item.attrs);
                    self.lines.extend(public_fields(&item.fields));
                }
                Item::Enum(item) if is_public(&item.vis) => {
                    self.add_type(&item.ident, &item.attrs);
                    self.lines.extend(item.variants.iter().map(|one| format!("{}{}", one.ident, text(&one.fields))));
                }
                Item::Impl(item) if item.trait_.is_none() => {
                    let functions = item.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(function) if is_public(&function.vis) => Some(signature(&function.sig)),
                        _ => None,
                    });
                    self.lines.extend(functions);
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, name: &syn::Ident, attributes: &[Attribute]) {
        let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
        if derives.map(|attribute| text(&attribute.meta)).any(|derive| derive.contains("thiserror::Error")) {
            self.errors.push(name.to_string());
        }
    }
}

fn signature(signature: &syn::Signature) -> String {
    format!("{}: {}", signature.ident, text(signature))
}

fn public_fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    public.filter_map(|field| Some(format!("{}: {}", field.ident.as_ref()?, text(&field.ty)))).collect()
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
    let sources = Sources::read();
    let lines = sources.lines.iter().filter(|line| !INDEX.iter().any(|known| line.starts_with(known)));
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
fn no_function_takes_a_bool() {
    let takes = |line: &&String| {
        let arguments = line.split_once("fn ").and_then(|(_, rest)| rest.split(" -> ").next());
        arguments.is_some_and(|arguments| arguments.contains(": bool"))
    };
    let sources = Sources::read();
    let found: Vec<&String> = sources.lines.iter().filter(takes).collect();
    assert!(found.is_empty(), "what does `true` mean at the caller? {found:?}");
}

#[test]
fn decisions_have_no_input_that_a_kep_denies_them() {
    let rows = [
        ("fn dra_node::kubelet::ClaimCache::plan_", "ResourceSlice"),
        ("fn dra_node::kubelet::ClaimCache::plan_unprepare", "ResourceClaim"),
        ("fn dra_attrs::numa::", "Gate"),
        ("fn dra_attrs::numa::", "Component"),
        ("fn dra_attrs::numa::", "Profile"),
    ];
    let listing = listing();
    for (functions, denied) in rows {
        let takes: Vec<_> = listing.iter().filter(|line| line.contains(functions)).collect();
        // req: 5945-KUBELET-16, 6072-FORM-10
        assert!(!takes.is_empty() && takes.iter().all(|line| !line.contains(denied)), "{denied}: {takes:#?}");
    }
}

#[test]
fn errors_end_in_error() {
    let errors = Sources::read().errors;
    let is_named = |name: &&String| name.ends_with("Error") || name.as_str() == "FieldErrors";
    let other: Vec<&String> = errors.iter().filter(|name| !is_named(name)).collect();
    assert!(errors.len() > 80 && other.is_empty(), "{} errors; {other:?}", errors.len());
    let is_named_so =
        |item: &Listed| item.name().ends_with("Error") && !errors.iter().any(|error| error == item.name());
    let not: Vec<String> = items().into_iter().filter(is_named_so).map(|item| item.path).collect();
    assert_eq!(not, [""; 0]);
}
