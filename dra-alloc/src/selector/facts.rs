//! Facts about an expression that an allocator can use.

use std::collections::BTreeSet;

use super::check::Checked;
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
        let count = |is_meant: &dyn Fn(NodeId) -> bool| checked.order.iter().filter(|node| is_meant(**node)).count();
        let devices = count(&|node| checked.is_device(node));
        let fields = |name: &str| count(&|node| is_field(checked, node, name));
        let (drivers, attributes) = (fields("driver"), fields("attributes"));
        let others = fields("capacity") + fields("allowMultipleAllocations");
        let read: Vec<(String, String)> = checked.order.iter().filter_map(|node| attribute(checked, *node)).collect();
        let are_known = drivers + attributes + others == devices && attributes == read.len();
        Self {
            only_driver: drivers == devices,
            is_constant: devices == 0,
            driver: pinned_driver(checked),
            attributes: are_known.then(|| BTreeSet::from_iter(read).into_iter().collect()),
        }
    }
}

/// Returns true for a field of the device.
fn is_field(checked: &Checked<'_>, node: NodeId, name: &str) -> bool {
    match checked.tree.kind(node) {
        Kind::Select { operand, field, test: false } => *field == name && checked.is_device(*operand),
        _ => false,
    }
}

/// Returns domain and id of the attribute that a node reads.
fn attribute(checked: &Checked<'_>, node: NodeId) -> Option<(String, String)> {
    let (names, id) = map_and_key(checked, node)?;
    let (domains, domain) = map_and_key(checked, names)?;
    is_field(checked, domains, "attributes").then(|| (domain.to_owned(), id.to_owned()))
}

/// Returns the map that a node reads from, and the key.
fn map_and_key<'c>(checked: &'c Checked<'_>, node: NodeId) -> Option<(NodeId, &'c str)> {
    match checked.tree.kind(node) {
        Kind::Select { operand, field, .. } => Some((*operand, field)),
        Kind::Call { function: "_[_]" | "_[?_]" | "_?._", arguments, .. } => {
            let [map, key] = *arguments.as_slice() else { return None };
            Some((map, checked.tree.text(key)?))
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
                let pinned = [(left, right), (right, left)].into_iter().find_map(|(driver, literal)| {
                    is_field(checked, driver, "driver").then(|| checked.tree.text(literal)).flatten()
                });
                if let Some(driver) = pinned {
                    return Some(driver.to_owned());
                }
            }
            _ => {}
        }
    }
    None
}
