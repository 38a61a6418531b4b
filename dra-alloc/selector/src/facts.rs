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
    /// Capacities by domain and id; `None` if they are not known before the evaluation.
    pub(super) capacities: Option<Vec<(String, String)>>,
}

impl Facts {
    /// Reads the facts off an expression.
    pub(super) fn of(checked: &Checked<'_>) -> Self {
        let count = |is_meant: &dyn Fn(NodeId) -> bool| checked.order.iter().filter(|node| is_meant(**node)).count();
        let devices = count(&|node| checked.is_device(node));
        let fields = |name: &str| count(&|node| checked.device_field(node) == Some(name));
        let (drivers, attributes) = (fields("driver"), fields("attributes"));
        let others = fields("capacity") + fields("allowMultipleAllocations");
        let all_read = |part: &str| -> Vec<(String, String)> {
            checked.order.iter().filter_map(|node| read_of(checked, *node, part)).collect()
        };
        let (read, capacities_read, capacities) = (all_read("attributes"), all_read("capacity"), fields("capacity"));
        let are_known = drivers + attributes + others == devices && attributes == read.len();
        Self {
            only_driver: drivers == devices,
            is_constant: devices == 0,
            driver: pinned_driver(checked),
            attributes: are_known.then(|| BTreeSet::from_iter(read).into_iter().collect()),
            capacities: (capacities == capacities_read.len())
                .then(|| BTreeSet::from_iter(capacities_read).into_iter().collect()),
        }
    }
}

/// Returns domain and id of the attribute or capacity that a node reads; `part` is the field of the device.
fn read_of(checked: &Checked<'_>, node: NodeId, part: &str) -> Option<(String, String)> {
    let (names, id, _) = checked.read(node)?;
    let (domains, domain, _) = checked.read(names)?;
    (checked.device_field(domains) == Some(part)).then(|| (domain.to_owned(), id.to_owned()))
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
                    (checked.device_field(driver) == Some("driver")).then(|| checked.tree.text(literal)).flatten()
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
