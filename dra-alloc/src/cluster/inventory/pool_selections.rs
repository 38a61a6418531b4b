//! Answers of selectors about the devices of a pool, kept as long as the pool is as it is.
//!
//! A list of selectors is asked about the same devices in each call. What they read of a device is part of the pool, so that an answer
//! holds until a slice of the pool changes.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use dra_attrs::internal::release::CelAttributes;
use dra_selector::Selector;
use dra_selector::internal::Searched;
use smallvec::SmallVec;

/// Number of lists of selectors whose answers a pool keeps: those that were asked for first.
const KEPT: usize = 4;
/// Bytes of all selectors of a list from which its answers are not kept: claims bring lists, and may be gone long before the pool.
const LONG: usize = 1_024;

/// Answers of several lists of selectors, by the attributes that a release knows: with others the same text is another selector.
#[derive(Debug, Default)]
pub(crate) struct PoolSelections {
    of_values: Lists,
    of_lists: Lists,
}

/// Answers of several lists of selectors.
#[derive(Debug, Default)]
struct Lists(OnceLock<Box<KeptSelections>>);

/// Answers of one list of selectors.
#[derive(Debug)]
pub(crate) struct KeptSelections {
    /// Texts of the selectors. Nothing compiled is kept alive.
    texts: SmallVec<[Box<str>; 2]>,
    /// Price of evaluating no selector, the first one, the first two and so on.
    prices: SmallVec<[u64; 3]>,
    /// Answer about each device; 0 if it is not known.
    answers: Box<[AtomicU8]>,
    next: Lists,
}

/// Answer of a list of selectors, which are evaluated up to the first one that is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectorsAnswer {
    /// Number of selectors that hold.
    pub(crate) held: usize,
    /// True if the next one is false.
    pub(crate) is_refused: bool,
}

impl PoolSelections {
    /// Returns the answers of a list of selectors about the devices of a pool, of which there are `devices`; `None` if the list is
    /// long, or the pool keeps those of as many others.
    pub(crate) fn of(
        &self,
        selectors: &[Arc<Selector>],
        attributes: CelAttributes,
        devices: usize,
    ) -> Option<&KeptSelections> {
        if selectors.iter().map(|selector| selector.expression().len()).sum::<usize>() >= LONG {
            return None;
        }
        let mut here = match attributes {
            CelAttributes::Values => &self.of_values,
            CelAttributes::ValuesAndLists => &self.of_lists,
        };
        for _ in 0..KEPT {
            let kept = here.0.get_or_init(|| Box::new(KeptSelections::new(selectors, devices)));
            if kept.are(selectors) {
                return Some(kept);
            }
            here = &kept.next;
        }
        None
    }
}

impl KeptSelections {
    fn new(selectors: &[Arc<Selector>], devices: usize) -> Self {
        let answers = std::iter::repeat_with(AtomicU8::default).take(devices).collect();
        let price_to = |end| selectors.iter().take(end).map(|selector| Searched(selector).direct_parts()).sum();
        let prices = (0..=selectors.len()).map(price_to).collect();
        let texts = selectors.iter().map(|selector| selector.expression().into()).collect();
        Self { texts, prices, answers, next: Lists::default() }
    }

    /// Returns true if the selectors have these texts.
    fn are(&self, selectors: &[Arc<Selector>]) -> bool {
        self.texts.len() == selectors.len()
            && self.texts.iter().zip(selectors).all(|(text, selector)| **text == *selector.expression())
    }

    /// Returns the answer about a device of the pool, by its number, if it is known, with the price of the selectors' direct forms.
    #[inline]
    pub(crate) fn answer(&self, device: usize) -> Option<(SelectorsAnswer, u64)> {
        let kept = self.answers.get(device)?.load(Ordering::Relaxed).checked_sub(1)?;
        let answer = SelectorsAnswer { held: usize::from(kept / 2), is_refused: kept % 2 == 1 };
        Some((answer, *self.prices.get(answer.held + usize::from(answer.is_refused))?))
    }

    /// Keeps the answer about a device. One about very many selectors is not kept.
    pub(crate) fn keep(&self, device: usize, answer: SelectorsAnswer) {
        let kept = u8::try_from(answer.held * 2 + usize::from(answer.is_refused) + 1);
        if let (Some(place), Ok(kept)) = (self.answers.get(device), kept) {
            place.store(kept, Ordering::Relaxed);
        }
    }
}

/// A copy begins without answers.
impl Clone for PoolSelections {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use dra_selector::Options;

    use super::*;

    const LISTS: CelAttributes = CelAttributes::ValuesAndLists;

    fn selectors(texts: &[&str]) -> Vec<Arc<Selector>> {
        texts.iter().map(|text| Arc::new(Selector::compile(text, &Options::stored()).unwrap())).collect()
    }

    #[test]
    fn answers_are_kept_by_the_texts_of_the_selectors() {
        let kept = PoolSelections::default();
        let (one, two) = (selectors(&["true"]), selectors(&["true", "device.driver == 'a'"]));
        let refused = SelectorsAnswer { held: 1, is_refused: true };
        kept.of(&one, LISTS, 3).unwrap().keep(2, SelectorsAnswer::default());
        kept.of(&two, LISTS, 3).unwrap().keep(1, refused);
        let again = selectors(&["true", "device.driver == 'a'"]);
        let price = again.iter().map(|selector| Searched(selector).direct_parts()).sum();
        let answers: Vec<_> = (0..4).map(|device| kept.of(&again, LISTS, 3).unwrap().answer(device)).collect();
        assert_eq!(answers, [None, Some((refused, price)), None, None]);
        assert_eq!(kept.of(&one, LISTS, 3).unwrap().answer(2), Some((SelectorsAnswer::default(), 0)));
        assert_eq!(kept.of(&one, CelAttributes::Values, 3).unwrap().answer(2), None);
    }

    #[test]
    fn a_pool_keeps_few_lists() {
        let kept = PoolSelections::default();
        let lists: Vec<_> = ["1 == 1", "2 == 2", "3 == 3", "4 == 4", "5 == 5"].map(|text| selectors(&[text])).into();
        assert!(lists.iter().map(|list| kept.of(list, LISTS, 1).is_some()).eq([true, true, true, true, false]));
    }

    #[test]
    fn a_long_list_is_not_kept() {
        let kept = PoolSelections::default();
        let long = format!("'{}' == ''", "a".repeat(LONG));
        assert!(kept.of(&selectors(&[&long]), LISTS, 1).is_none() && kept.of_lists.0.get().is_none());
    }

    #[test]
    fn an_answer_of_many_selectors_is_not_kept() {
        let kept = PoolSelections::default();
        let many = vec![selectors(&["true"]).remove(0); 130];
        let list = kept.of(&many, LISTS, 2).unwrap();
        let largest = SelectorsAnswer { held: 126, is_refused: true };
        list.keep(0, largest);
        list.keep(1, SelectorsAnswer { held: 127, is_refused: true });
        assert_eq!((list.answer(0).map(|(answer, _)| answer), list.answer(1)), (Some(largest), None));
    }
}
