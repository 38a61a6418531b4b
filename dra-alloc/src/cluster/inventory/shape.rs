//! Shapes of pools: the facts of a pool's devices in search order, interned, so that equal pools of different nodes have one id.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::facts::Facts;
use super::lens::Lens;
use crate::cluster::stamp::Stamp;
use crate::cluster::trie::hash;

/// Number of lenses through which pools are looked at. With one more, all are forgotten.
const MOST_LENSES: usize = 64;
/// Number of lenses whose shapes a pool keeps.
const KEPT: usize = 4;
/// Number of shapes from which those without a pool are looked for.
const MANY: usize = 64;

/// Shape of a pool through a lens. Pools with the same shape have the same facts, and the reverse.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Mark that no other shape, and nothing else, has.
    id: Stamp,
    hash: u64,
    lens: Stamp,
    facts: Facts,
}

/// Shapes of the pools of an inventory. Each belongs to the pools that have it, and goes with the last of them.
#[derive(Debug, Default)]
pub(crate) struct Shapes(RwLock<Tables>);

#[derive(Debug, Default)]
struct Tables {
    lenses: Vec<(Arc<Lens>, Stamp)>,
    shapes: HashTable<Weak<Shape>>,
    /// Number of shapes at which those without a pool are forgotten.
    sweep_at: usize,
}

/// Lens with the mark that no other lens has.
#[derive(Clone, Debug)]
pub(crate) struct KnownLens {
    lens: Arc<Lens>,
    id: Stamp,
}

/// Shapes of one pool through the lenses that looked at it last.
#[derive(Debug, Default)]
pub(super) struct ShapesOfPool(RwLock<SmallVec<[OfLens; 1]>>);

/// Lens, and the shape of the pool through it; `None` for a pool without a shape.
type OfLens = (Stamp, Option<Arc<Shape>>);

impl Shape {
    pub(crate) const fn id(&self) -> Stamp {
        self.id
    }
}

impl KnownLens {
    pub(crate) const fn id(&self) -> Stamp {
        self.id
    }
}

impl Shapes {
    /// Returns a lens with its mark.
    pub(crate) fn lens(&self, lens: Lens) -> KnownLens {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((lens, id)) = tables.lenses.iter().find(|(known, _)| **known == lens) {
            return KnownLens { lens: Arc::clone(lens), id: *id };
        }
        if tables.lenses.len() >= MOST_LENSES {
            tables.lenses.clear();
        }
        let known = KnownLens { lens: Arc::new(lens), id: Stamp::next() };
        tables.lenses.push((Arc::clone(&known.lens), known.id));
        known
    }

    /// Returns the shape with these facts.
    fn intern(&self, facts: Facts, lens: Stamp) -> Arc<Shape> {
        let key = hash((lens, facts.bytes()));
        let is_it = |shape: &Arc<Shape>| shape.hash == key && shape.lens == lens && shape.facts == facts;
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let upgraded = |shape: &Weak<Shape>| shape.upgrade();
        if let Some(known) = tables.shapes.iter_hash(key).filter_map(upgraded).find(is_it) {
            return known;
        }
        tables.sweep();
        let shape = Arc::new(Shape { id: Stamp::next(), hash: key, lens, facts });
        tables.shapes.insert_unique(key, Arc::downgrade(&shape), hash_of);
        shape
    }
}

impl Tables {
    /// Forgets the shapes without a pool, if they may be as many as the others.
    fn sweep(&mut self) {
        if self.shapes.len() >= self.sweep_at.max(MANY) {
            self.shapes.retain(|shape| shape.strong_count() > 0);
            self.sweep_at = 2 * self.shapes.len();
        }
    }
}

/// Returns the hash of a shape; that of a shape without a pool is of no use.
fn hash_of(shape: &Weak<Shape>) -> u64 {
    shape.upgrade().map_or(0, |shape| shape.hash)
}

impl Clone for ShapesOfPool {
    fn clone(&self) -> Self {
        Self(RwLock::new(self.0.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl ShapesOfPool {
    /// Returns the id of the pool's shape through a lens, whose facts are read when it is first asked for.
    pub(super) fn find(
        &self,
        shapes: &Shapes,
        lens: &KnownLens,
        facts: impl FnOnce(&Lens) -> Option<Facts>,
    ) -> Option<Stamp> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shape)) = known.iter().find(|(of, _)| *of == lens.id) {
            return shape.as_deref().map(Shape::id);
        }
        drop(known);
        let shape = facts(&lens.lens).map(|facts| shapes.intern(facts, lens.id));
        let id = shape.as_deref().map(Shape::id);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push((lens.id, shape));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(number: usize) -> Facts {
        let mut facts = Facts::default();
        facts.number(number);
        facts
    }

    #[test]
    fn shapes_go_with_their_last_pool() {
        let shapes = Shapes::default();
        let lens = shapes.lens(Lens::ALL);
        let held: Vec<Arc<Shape>> = (0..100).map(|number| shapes.intern(facts(number), lens.id)).collect();
        (100..10_000).for_each(|number| drop(shapes.intern(facts(number), lens.id)));
        assert!(shapes.0.read().unwrap().shapes.len() <= 2 * held.len());
        assert!(held.iter().enumerate().all(|(at, shape)| shapes.intern(facts(at), lens.id).id == shape.id));
    }

    #[test]
    fn a_shape_is_that_of_one_lens() {
        let shapes = Shapes::default();
        let lenses = [Lens::ALL, Lens::of([("a.example", "b")].into())].map(|lens| shapes.lens(lens));
        let [all, some] = lenses.each_ref().map(|lens| shapes.intern(facts(1), lens.id));
        assert_ne!(all.id, some.id);
        assert_eq!(shapes.lens(Lens::ALL).id, lenses[0].id);
    }
}
