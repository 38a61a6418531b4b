//! Facts, written one after the other, and the parts of a device and of a slice that are facts.
//!
//! Each type is destructured without `..`, so that a new field of Kubernetes does not compile until somebody has said whether it
//! is a fact.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, CounterSet, DeviceAttribute, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// List of facts. Two lists have the same bytes only if all their facts are equal: a number tells where it ends, and a text and a
/// list begin with their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(Vec<u8>);

/// Value that is a fact.
pub(crate) trait Fact {
    /// Writes the value behind other facts.
    fn write(&self, facts: &mut Facts);
}

impl Facts {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn number(&mut self, number: usize) {
        let mut rest = number;
        while rest >= 0x80 {
            self.0.push(rest.to_le_bytes().first().copied().unwrap_or_default() | 0x80);
            rest >>= 7;
        }
        self.0.push(rest.to_le_bytes().first().copied().unwrap_or_default());
    }
}

impl Fact for usize {
    fn write(&self, facts: &mut Facts) {
        facts.number(*self);
    }
}

impl Fact for bool {
    fn write(&self, facts: &mut Facts) {
        facts.0.push(u8::from(*self));
    }
}

impl Fact for i64 {
    fn write(&self, facts: &mut Facts) {
        facts.0.extend(self.to_le_bytes());
    }
}

impl Fact for str {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        facts.0.extend(self.as_bytes());
    }
}

impl Fact for String {
    fn write(&self, facts: &mut Facts) {
        self.as_str().write(facts);
    }
}

impl<T: Fact + ?Sized> Fact for &T {
    fn write(&self, facts: &mut Facts) {
        T::write(self, facts);
    }
}

impl<T: Fact> Fact for Option<T> {
    fn write(&self, facts: &mut Facts) {
        self.is_some().write(facts);
        if let Some(value) = self {
            value.write(facts);
        }
    }
}

impl<T: Fact> Fact for Vec<T> {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        for value in self {
            value.write(facts);
        }
    }
}

impl<T: Fact> Fact for BTreeMap<String, T> {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        for (name, value) in self {
            name.write(facts);
            value.write(facts);
        }
    }
}

/// Types whose facts are those of fields. A field after `without` is none.
macro_rules! facts_of {
    ($($type:ident { $($field:ident),+ $(; without $other:ident)? }),+ $(,)?) => {
        $(impl Fact for $type {
            fn write(&self, facts: &mut Facts) {
                let Self { $($field,)+ $($other: _,)? } = self;
                $($field.write(facts);)+
            }
        })+
    };
}

impl Fact for Quantity {
    fn write(&self, facts: &mut Facts) {
        let Self(text) = self;
        text.write(facts);
    }
}

facts_of! {
    DeviceAttribute { bool, bools, int, ints, string, strings, version, versions },
    DeviceCapacity { request_policy, value },
    CapacityRequestPolicy { default, valid_range, valid_values },
    CapacityRequestPolicyRange { max, min, step },
    Counter { value },
    CounterSet { counters, name },
    DeviceCounterConsumption { compatibility_groups, counter_set, counters },
    DeviceTaint { effect, key, value; without time_added },
}
