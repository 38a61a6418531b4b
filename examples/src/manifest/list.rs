//! Lists of objects. Who reads one takes what is not in it for absent, so that it must be whole.

use super::USERS;
use super::problem::Fault;
use super::tree::{Step, Tree};

/// Kind and API version of the items of a list, which need not repeat them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Implied<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) api_version: Option<&'a str>,
}

/// Returns the kind of the items if a document is a list: empty for the kind `List`, whose items have each their own.
pub(super) fn kind_of_items<'a>(tree: &Tree, kind: &'a str) -> Option<&'a str> {
    let of = kind.strip_suffix("List")?;
    let is_known = of.is_empty() || USERS.iter().any(|(known, _)| *known == of);
    (is_known || tree.get("items").is_some()).then_some(of)
}

impl<'a> Implied<'a> {
    /// Checks that a list is whole, and returns what its items need not repeat.
    pub(super) fn by_list(tree: &'a Tree, of: &'a str) -> Result<Self, Fault> {
        match tree.get("items") {
            None => return Err(Fault::new(&["items"], "must be set")),
            Some(items) if !items.is_list() => return Err(Fault::new(&["items"], "must be a list")),
            Some(_) => {}
        }
        if let Some(next) = tree.get("metadata").and_then(|metadata| metadata.get("continue"))
            && !next.is_null()
            && next.as_text() != Some("")
        {
            let reason = "the list is not whole: the server has more objects; ask without a limit";
            return Err(Fault::new(&["metadata", "continue"], reason));
        }
        let is_typed = !of.is_empty();
        let api_version = tree.text(&["apiVersion"]).filter(|_| is_typed);
        Ok(Self { kind: Some(of).filter(|_| is_typed), api_version })
    }

    /// Returns the fault of an item that can't be one of the list's.
    fn fault(self, item: &Tree) -> Option<(&'static str, String)> {
        let kind = item.text(&["kind"]);
        match (self.kind, kind) {
            _ if item.is_null() => Some(("", "null in place of an object".to_owned())),
            (Some(of), Some(kind)) if of != kind => Some(("kind", format!("{kind} in a list of kind {of}List"))),
            _ => None,
        }
    }
}

/// Returns the items that can be read, and the fault of the first that can't, with the number of all such items.
pub(super) fn items<'t>(tree: &'t Tree, implied: Implied<'_>) -> (Vec<&'t Tree>, Option<Fault>) {
    let (mut sound, mut first, mut count) = (Vec::new(), None, 0_usize);
    for (index, item) in tree.get("items").into_iter().flat_map(Tree::elements).enumerate() {
        match implied.fault(item) {
            None => sound.push(item),
            Some(fault) => {
                count = count.saturating_add(1);
                first.get_or_insert((index, fault));
            }
        }
    }
    let fault = first.map(|(index, (field, reason))| {
        let more = if count > 1 { format!("; the first of {count} items that can't be read") } else { String::new() };
        let field = Some(field).filter(|field| !field.is_empty()).map(Step::from);
        let path = ["items".into(), Step::Index(index)].into_iter().chain(field).collect();
        Fault { path, reason: format!("{reason}{more}") }
    });
    (sound, fault)
}
