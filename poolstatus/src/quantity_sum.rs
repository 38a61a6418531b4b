//! Sums of quantities, with a rule for the format of the result.

use std::marker::PhantomData;

use dra_attrs::{Quantity, QuantityFormat};

/// Rule that selects the format of a sum from the formats of its addends.
pub(crate) trait FormatRule: Default {
    /// Returns the format of the sum after one more addend. `before` is the format so far, `so_far` the sum in nano-units.
    fn select(before: Option<QuantityFormat>, next: QuantityFormat, so_far: i128) -> QuantityFormat;
}

/// Rule of apimachinery: a sum has the format of its first addend, or of the next addend whenever the sum is zero.
#[derive(Debug, Default)]
pub(crate) struct FirstFormat;

/// Rule that does not depend on the order of the addends: a sum is binary if any addend is, else decimal if any addend
/// is, else exponential.
#[derive(Debug, Default)]
pub(crate) struct OrderFreeFormat;

impl FormatRule for FirstFormat {
    fn select(before: Option<QuantityFormat>, next: QuantityFormat, so_far: i128) -> QuantityFormat {
        before.filter(|_| so_far != 0).unwrap_or(next)
    }
}

impl FormatRule for OrderFreeFormat {
    fn select(before: Option<QuantityFormat>, next: QuantityFormat, _: i128) -> QuantityFormat {
        let rank = |format: &QuantityFormat| match format {
            QuantityFormat::BinarySi => 0,
            QuantityFormat::DecimalSi => 1,
            QuantityFormat::DecimalExponent => 2,
        };
        before.into_iter().chain([next]).min_by_key(rank).unwrap_or(next)
    }
}

/// A saturating sum of quantities. Positive and negative addends are kept apart, so that their order does not matter where
/// the sum saturates.
#[derive(Debug, Default)]
pub(crate) struct QuantitySum<R> {
    /// Sum of the positive addends, in nano-units.
    positive: i128,
    /// Sum of the negative addends, in nano-units.
    negative: i128,
    format: Option<QuantityFormat>,
    rule: PhantomData<R>,
}

impl<R: FormatRule> QuantitySum<R> {
    pub(crate) fn add(&mut self, addend: Quantity) {
        let nanos = addend.nanos();
        if nanos == 0 {
            return;
        }
        self.format = Some(R::select(self.format, addend.format(), self.nanos()));
        if nanos > 0 {
            self.positive = self.positive.saturating_add(nanos);
        } else {
            self.negative = self.negative.saturating_add(nanos);
        }
    }

    pub(crate) fn total(&self) -> Quantity {
        let format = self.format.unwrap_or(QuantityFormat::DecimalSi);
        Quantity::from_nanos(self.nanos(), format)
    }

    const fn nanos(&self) -> i128 {
        self.positive.saturating_add(self.negative)
    }
}

#[cfg(test)]
mod tests {
    use dra_attrs::{Quantity, QuantityFormat};

    use super::{OrderFreeFormat, QuantitySum};

    #[test]
    fn the_order_does_not_matter_where_a_sum_saturates() {
        let [most, less] = [i128::MAX, -1_000].map(|nanos| Quantity::from_nanos(nanos, QuantityFormat::DecimalSi));
        let total = |addends: [Quantity; 3]| {
            let mut sum = QuantitySum::<OrderFreeFormat>::default();
            for addend in addends {
                sum.add(addend);
            }
            sum.total().nanos()
        };
        for addends in [[most, most, less], [most, less, most], [less, most, most]] {
            assert_eq!(total(addends), i128::MAX - 1_000);
        }
    }
}
