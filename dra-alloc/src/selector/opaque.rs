//! Types of this crate as CEL values: they have a name, are copied, and may be compared.

/// Implements the trait of CEL values for a type. Without a comparison function, no two values are equal.
macro_rules! opaque {
    ($value:ty, $name:literal $(, $equals:expr)?) => {
        impl cel::common::value::Val for $value {
            fn get_type(&self) -> &cel::common::types::Type {
                Self::cel_type()
            }

            fn cel_type() -> &'static cel::common::types::Type {
                static TYPE: cel::common::types::Type = cel::common::types::Type::new_unspecified_type($name);
                &TYPE
            }

            $(fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                let equals: fn(&Self, &Self) -> bool = $equals;
                other.downcast_ref::<Self>().is_some_and(|other| equals(self, other))
            })?

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v>
            where
                Self: 'v,
            {
                Box::new(<Self as Clone>::clone(self))
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $value {}
    };
}

pub(super) use opaque;
