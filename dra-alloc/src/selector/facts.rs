//! Facts about an expression that an allocator can use.

use std::collections::BTreeSet;

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
        for node in checked.order.iter().filter(|node| !matches!(checked.reference(**node), Reference::Name(_))) {
            for child in checked.tree.children(*node) {
                if let Some(parent) = parents.get_mut(child.index()) {
                    *parent = Some(*node);
                }
            }
        }
        let devices = || checked.order.iter().filter(|node| checked.is_device(**node));
        let parent = |node: NodeId| parents.get(node.index()).copied().flatten();
        let field = |node: NodeId| match checked.tree.kind(parent(node)?) {
            Kind::Select { field, test: false, .. } => Some(*field),
            _ => None,
        };
        let read = devices().map(|device| match field(*device) {
            Some("driver" | "allowMultipleAllocations" | "capacity") => Some(None),
            Some("attributes") => {
                let domain = parent(parent(*device)?)?;
                Some(Some((key(checked, domain)?, key(checked, parent(domain)?)?)))
            }
            _ => None,
        });
        let attributes: Option<BTreeSet<Option<(String, String)>>> = read.collect();
        Self {
            only_driver: devices().all(|device| field(*device) == Some("driver")),
            is_constant: devices().next().is_none(),
            driver: pinned_driver(checked),
            attributes: attributes.map(|all| all.into_iter().flatten().collect()),
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
