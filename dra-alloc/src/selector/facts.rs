//! Facts about an expression that an allocator can use.

use super::check::{Checked, Reference};
use super::syntax::tree::{Kind, NodeId};

/// Facts about the reads of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Only `device.driver`, or nothing.
    pub(super) only_driver: bool,
    /// Nothing.
    pub(super) is_constant: bool,
    /// The expression is false or an error for devices of other drivers.
    pub(super) driver: Option<String>,
    /// Attributes by domain and id; `None` if they are not known before the evaluation.
    pub(super) attributes: Option<Vec<(String, String)>>,
}

impl Facts {
    /// Reads the facts off an expression.
    pub(super) fn of(checked: &Checked<'_>) -> Self {
        let mut parents = vec![None; checked.tree.len()];
        let mut reachable = vec![checked.root];
        let mut devices = Vec::new();
        while let Some(node) = reachable.pop() {
            if checked.is_device(node) {
                devices.push(node);
            }
            if matches!(checked.reference(node), Reference::Name(_)) {
                continue;
            }
            for child in checked.tree.children(node) {
                if let Some(parent) = parents.get_mut(child.index()) {
                    *parent = Some(node);
                }
                reachable.push(child);
            }
        }
        let parent = |node: NodeId| parents.get(node.index()).copied().flatten();
        let field = |node: NodeId| match checked.tree.kind(parent(node)?) {
            Kind::Select { field, test: false, .. } => Some(*field),
            _ => None,
        };
        let read: Option<Vec<Vec<(String, String)>>> = devices
            .iter()
            .map(|device| match field(*device) {
                Some("driver" | "allowMultipleAllocations" | "capacity") => Some(Vec::new()),
                Some("attributes") => {
                    let domain = parent(parent(*device)?)?;
                    let id = parent(domain)?;
                    Some(vec![(key(checked, domain)?, key(checked, id)?)])
                }
                _ => None,
            })
            .collect();
        let mut attributes = read.map(|read| read.concat());
        if let Some(attributes) = &mut attributes {
            attributes.sort();
            attributes.dedup();
        }
        Self {
            only_driver: devices.iter().all(|device| field(*device) == Some("driver")),
            is_constant: devices.is_empty(),
            driver: pinned_driver(checked),
            attributes,
        }
    }
}

/// Returns the key with which a node reads from a map.
fn key(checked: &Checked<'_>, node: NodeId) -> Option<String> {
    match checked.tree.kind(node) {
        Kind::Select { field, .. } => Some((*field).to_owned()),
        Kind::Call { function: "_[_]" | "_[?_]" | "_?._", arguments, .. } => {
            checked.text(*arguments.get(1)?).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the driver of all devices for which the expression can be true: one side of its `&&` says so.
fn pinned_driver(checked: &Checked<'_>) -> Option<String> {
    let mut terms = vec![checked.root];
    while let Some(term) = terms.pop() {
        let Kind::Call { function, target: None, arguments } = checked.tree.kind(term) else { continue };
        let [left, right] = *arguments.as_slice() else { continue };
        match *function {
            "_&&_" => terms.extend([left, right]),
            "_==_" => {
                let pinned = [(left, right), (right, left)]
                    .into_iter()
                    .find_map(|(driver, literal)| is_driver(checked, driver).then(|| checked.text(literal)).flatten());
                if let Some(driver) = pinned {
                    return Some(driver.to_owned());
                }
            }
            _ => {}
        }
    }
    None
}

fn is_driver(checked: &Checked<'_>, node: NodeId) -> bool {
    match checked.tree.kind(node) {
        Kind::Select { operand, field: "driver", test: false } => checked.is_device(*operand),
        _ => false,
    }
}
