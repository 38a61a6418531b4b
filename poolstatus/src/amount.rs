//! Sums of quantities.

use std::marker::PhantomData;

use dra_attrs::quantity::{Quantity, QuantityFormat};

/// Which addend gives a sum its format.
pub(crate) trait Format: Default {
    /// `before` is that of the sum so far.
    fn choose(before: Option<QuantityFormat>, next: QuantityFormat, so_far: i128) -> QuantityFormat;
}

/// The first that is added to nothing, as apimachinery adds.
#[derive(Debug, Default)]
pub(crate) struct Ordered;

/// The same format whatever the order: binary before decimal before exponent.
#[derive(Debug, Default)]
pub(crate) struct Unordered;

impl Format for Ordered {
    fn choose(before: Option<QuantityFormat>, next: QuantityFormat, so_far: i128) -> QuantityFormat {
        before.filter(|_| so_far != 0).unwrap_or(next)
    }
}

impl Format for Unordered {
    fn choose(before: Option<QuantityFormat>, next: QuantityFormat, _: i128) -> QuantityFormat {
        let rank = |format: &QuantityFormat| match format {
            QuantityFormat::BinarySi => 0,
            QuantityFormat::DecimalSi => 1,
            QuantityFormat::DecimalExponent => 2,
        };
        before.into_iter().chain([next]).min_by_key(rank).unwrap_or(next)
    }
}

/// A sum that stops at the ends of its range. What is added and what is taken away are kept apart, so that the order does
/// not matter there either.
#[derive(Debug, Default)]
pub(crate) struct Sum<F> {
    added: i128,
    taken: i128,
    format: Option<QuantityFormat>,
    order: PhantomData<F>,
}

impl<F: Format> Sum<F> {
    pub(crate) fn add(&mut self, amount: Quantity) {
        let nanos = amount.nanos();
        if nanos == 0 {
            return;
        }
        self.format = Some(F::choose(self.format, amount.format(), self.so_far()));
        if nanos > 0 {
            self.added = self.added.saturating_add(nanos);
        } else {
            self.taken = self.taken.saturating_add(nanos);
        }
    }

    pub(crate) fn total(&self) -> Quantity {
        let format = self.format.unwrap_or(QuantityFormat::DecimalSi);
        Quantity::from_nanos(self.so_far(), format)
    }

    const fn so_far(&self) -> i128 {
        self.added.saturating_add(self.taken)
    }
}
