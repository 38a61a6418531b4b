//! Places of fields in the JSON of an object.

use std::collections::BTreeMap;

use dra_attrs::FieldPath;
use serde_json::Value;

/// Places with a rule each, as a tree of names, so that an object with many devices is walked once for all of them.
///
/// A place is a path such as `spec.devices[*].taints`; `[*]` is every item of a list and every value of a map.
#[derive(Debug)]
pub struct Places<R> {
    here: Vec<Place<R>>,
    each: Option<Box<Self>>,
    fields: BTreeMap<&'static str, Self>,
}

/// One place with its rule.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "read by the packages of the family alone")]
pub struct Place<R> {
    /// Position among all places.
    pub number: usize,
    /// Path from the root of the object.
    pub path: &'static str,
    /// Rule that holds there.
    pub rule: R,
}

impl<R> Places<R> {
    /// No place.
    pub const NONE: Self = Self { here: Vec::new(), each: None, fields: BTreeMap::new() };

    /// Creates the tree of places with their rules.
    pub fn new(places: impl IntoIterator<Item = (&'static str, R)>) -> Self {
        let mut all = Self::NONE;
        for (number, (path, rule)) in places.into_iter().enumerate() {
            all.below(path).here.push(Place { number, path, rule });
        }
        all
    }

    /// Returns the node at the end of a path, made if it is not there.
    fn below(&mut self, path: &'static str) -> &mut Self {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return self;
        }
        if let Some(rest) = path.strip_prefix("[*]") {
            return self.each.get_or_insert_with(|| Box::new(Self::NONE)).below(rest);
        }
        let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
        self.fields.entry(name).or_insert(Self::NONE).below(rest)
    }

    /// Calls `act` for every value of an object that is at a place, from the outside in. A place that the object does not
    /// have is skipped.
    pub fn visit(
        &self,
        value: &mut Value,
        at: &FieldPath<'_>,
        act: &mut dyn FnMut(&Place<R>, &mut Value, &FieldPath<'_>),
    ) {
        self.here.iter().for_each(|place| act(place, value, at));
        if let Some(each) = &self.each {
            match value {
                Value::Array(items) => {
                    items.iter_mut().enumerate().for_each(|(index, item)| each.visit(item, &at.index(index), act));
                }
                Value::Object(entries) => {
                    entries.iter_mut().for_each(|(key, entry)| each.visit(entry, &at.key(key), act));
                }
                _ => {}
            }
        }
        if let Value::Object(fields) = value {
            for (name, below) in &self.fields {
                if let Some(value) = fields.get_mut(*name) {
                    below.visit(value, &at.child(name), act);
                }
            }
        }
    }
}
