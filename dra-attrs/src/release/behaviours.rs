//! Behaviours between which releases choose, as plain enums.

/// Declares enums of behaviours: exhaustive and not to be compared, so that a new behaviour stops whoever decides by it.
macro_rules! behaviours {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $of:literal])* $variant:ident,)+ })+) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        #[expect(clippy::exhaustive_enums, reason = "a new behaviour must stop whoever decides by it")]
        pub enum $name { $($(#[doc = $of])* $variant,)+ }
    )+ };
}

pub(super) use behaviours;
