//! Index of shared slices, which several nodes can see, by what a node must have to see them.
//!
//! A slice for some nodes names a label value (`In`) or a node. A node is asked only for the slices under its own labels
//! and its name; each of them is then checked in full, so that the index may hold too many slices but never too few. A
//! slice of which no such place is known, or whose selectors have an error, is checked for every node: the error is
//! then found on every node, as without the index.

use std::collections::BTreeMap;

use dra_attrs::node_selector_matches;
use dra_device::pool::slice_devices;
use hashbrown::HashTable;
use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::lists::{Positions, SliceIndex, insert_sorted};
use crate::cluster::scope::Scope;
use crate::cluster::trie::hash;

/// Largest number of places under which one slice is listed.
const MOST_PLACES: usize = 4096;

/// Index of shared slices.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedIndex {
    /// Slices for all nodes.
    everywhere: Positions,
    /// Slices by the hash of a label value or a node name.
    places: HashTable<Listed>,
    /// Label keys of `places`, each with the number of slices that name it.
    keys: BTreeMap<String, usize>,
    /// Slices that are checked for every node.
    anywhere: Positions,
}

#[derive(Clone, Debug)]
struct Listed {
    hash: u64,
    positions: Positions,
}

/// Places from which a slice may be visible.
enum Places<'s> {
    Everywhere,
    /// Not known.
    Anywhere,
    Some(Vec<Place<'s>>),
}

/// Label value or name of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'s> {
    Label { key: &'s str, value: &'s str },
    Node { name: &'s str },
}

impl Place<'_> {
    fn hash(self) -> u64 {
        match self {
            Self::Label { key, value } => hash((key, value)),
            Self::Node { name } => hash(name),
        }
    }
}

impl SharedIndex {
    /// Returns true if there are no shared slices.
    pub(super) fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.anywhere.is_empty() && self.places.is_empty()
    }

    /// Returns the slices for all nodes.
    pub(super) const fn everywhere(&self) -> &Positions {
        &self.everywhere
    }

    /// Returns the slices that a node may see beside those for all nodes, ascending.
    pub(super) fn beside(&self, node: &Node) -> Positions {
        let mut found = self.anywhere.clone();
        if self.places.is_empty() {
            return found;
        }
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.add(&mut found, Place::Node { name });
        let labels = node.metadata.labels.as_ref();
        if self.keys.len() <= labels.map_or(0, BTreeMap::len) {
            for key in self.keys.keys() {
                if let Some(value) = labels.and_then(|labels| labels.get(key)) {
                    self.add(&mut found, Place::Label { key, value });
                }
            }
        } else {
            for (key, value) in labels.into_iter().flatten() {
                self.add(&mut found, Place::Label { key, value });
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn add(&self, found: &mut Positions, place: Place<'_>) {
        let hash = place.hash();
        found.extend(
            self.places
                .find(hash, |listed| listed.hash == hash)
                .iter()
                .flat_map(|listed| listed.positions.iter().copied()),
        );
    }

    pub(super) fn insert(&mut self, slice: &ResourceSlice, index: SliceIndex) {
        match places(slice) {
            Places::Everywhere => insert_sorted(&mut self.everywhere, index),
            Places::Anywhere => insert_sorted(&mut self.anywhere, index),
            Places::Some(places) => {
                for place in places {
                    let hash = place.hash();
                    let make = || Listed { hash, positions: Positions::new() };
                    let entry = self.places.entry(hash, |listed| listed.hash == hash, |listed| listed.hash);
                    insert_sorted(&mut entry.or_insert_with(make).into_mut().positions, index);
                    if let Place::Label { key, .. } = place {
                        *self.keys.entry(key.to_owned()).or_default() += 1;
                    }
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slice: &ResourceSlice, index: SliceIndex) {
        match places(slice) {
            Places::Everywhere => self.everywhere.retain(|other| *other != index),
            Places::Anywhere => self.anywhere.retain(|other| *other != index),
            Places::Some(places) => {
                for place in places {
                    self.remove_from(place, index);
                }
            }
        }
    }

    fn remove_from(&mut self, place: Place<'_>, index: SliceIndex) {
        let hash = place.hash();
        if let Ok(mut entry) = self.places.find_entry(hash, |listed| listed.hash == hash) {
            entry.get_mut().positions.retain(|other| *other != index);
            if entry.get().positions.is_empty() {
                entry.remove();
            }
        }
        if let Place::Label { key, .. } = place
            && let Some(slices) = self.keys.get_mut(key)
        {
            *slices -= 1;
            if *slices == 0 {
                self.keys.remove(key);
            }
        }
    }
}

/// Returns the places from which a shared slice may be visible, without duplicates.
fn places(slice: &ResourceSlice) -> Places<'_> {
    let mut places = Vec::new();
    let is_known = match Scope::from_slice(&slice.spec) {
        Scope::AllNodes => return Places::Everywhere,
        Scope::Unknown if slice.spec.per_device_node_selection == Some(true) => {
            let mut is_everywhere = false;
            let is_known = slice_devices(slice).iter().all(|device| match Scope::from_device(device) {
                Scope::AllNodes => {
                    is_everywhere = true;
                    true
                }
                scope => add_places(scope, &mut places),
            });
            if is_known && is_everywhere {
                return Places::Everywhere;
            }
            is_known
        }
        scope => add_places(scope, &mut places),
    };
    places.sort_unstable();
    places.dedup();
    if is_known && places.len() <= MOST_PLACES { Places::Some(places) } else { Places::Anywhere }
}

/// Adds places one of which a node must have to be in the scope. Returns false if they are not known.
fn add_places<'s>(scope: Scope<'s>, places: &mut Vec<Place<'s>>) -> bool {
    match scope {
        Scope::Unknown => true,
        Scope::AllNodes => false,
        Scope::Node(name) => {
            places.push(Place::Node { name });
            true
        }
        Scope::Selector(selector) => {
            is_valid(selector) && selector.node_selector_terms.iter().all(|term| add_places_of_term(term, places))
        }
    }
}

/// Returns true if the selector has no error, which does not depend on the node.
fn is_valid(selector: &NodeSelector) -> bool {
    node_selector_matches(selector, &Node::default()).is_ok()
}

fn add_places_of_term<'s>(term: &'s NodeSelectorTerm, places: &mut Vec<Place<'s>>) -> bool {
    let mut fields =
        term.match_fields.iter().flatten().filter(|field| field.operator == "In" && field.key == "metadata.name");
    if let Some(field) = fields.next() {
        places.extend(field.values.iter().flatten().map(|name| Place::Node { name }));
        return true;
    }
    let mut labels = term.match_expressions.iter().flatten().filter(|label| label.operator == "In");
    let Some(label) = labels.next() else {
        // A term without requirements selects no node.
        return term.match_expressions.iter().flatten().chain(term.match_fields.iter().flatten()).next().is_none();
    };
    places.extend(label.values.iter().flatten().map(|value| Place::Label { key: &label.key, value }));
    true
}
