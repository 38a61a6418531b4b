//! Events of a watch, with each list in one piece.

use kube::runtime::watcher::Event;

/// List that a watch is reading.
#[derive(Debug)]
pub struct List<K>(Vec<K>);

/// Event of a watch, with lists in one piece.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the steps of a watch")]
pub enum Step<K> {
    /// A part of a list.
    More,
    /// A complete list.
    All(Vec<K>),
    /// An object that was added or changed.
    One(Box<K>),
    /// An object that was deleted.
    Gone(Box<K>),
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> List<K> {
    /// Adds an object that the list has, and that comes from elsewhere.
    pub fn keep(&mut self, object: K) {
        self.0.push(object);
    }

    /// Takes an event of the watch, and returns what it completes.
    pub fn take(&mut self, event: Event<K>) -> Step<K> {
        match event {
            Event::Init => {
                self.0.clear();
                Step::More
            }
            Event::InitApply(object) => {
                self.0.push(object);
                Step::More
            }
            Event::InitDone => Step::All(std::mem::take(&mut self.0)),
            Event::Apply(object) => Step::One(Box::new(object)),
            Event::Delete(object) => Step::Gone(Box::new(object)),
        }
    }
}
