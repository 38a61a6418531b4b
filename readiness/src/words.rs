//! Choices of two: a bool in the types of this crate, one of two words in JSON.

use std::marker::PhantomData;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Choice of two, with its words in JSON: for false, then for true.
pub(crate) trait Choice {
    const WORDS: [&'static str; 2];
}

/// Reads and writes a bool as the words of a choice, for the attribute `with` of serde.
pub(crate) struct Words<C>(PhantomData<C>);

impl<C: Choice> Words<C> {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub(crate) fn serialize<S: Serializer>(is_second: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        let [first, second] = C::WORDS;
        if *is_second { second } else { first }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        let word = String::deserialize(deserializer)?;
        let place = C::WORDS.iter().position(|known| *known == word);
        place.map(|place| place == 1).ok_or_else(|| D::Error::unknown_variant(&word, &const { C::WORDS }))
    }
}

/// Declares choices, each with its words for false and for true.
macro_rules! choices {
    ($($name:ident: $no:literal, $yes:literal;)*) => {$(
        pub(crate) struct $name;

        impl Choice for $name {
            const WORDS: [&'static str; 2] = [$no, $yes];
        }
    )*};
}

choices! {
    LateReport: "ownerWins", "sticky";
    ReleaseWhen: "timeoutWritten", "taintPresent";
    TimeoutWrite: "always", "whenUnreported";
    ColdStart: "fromNow", "fromReadyTransition";
    LabelPolicy: "owned", "authoritative";
    PreexistingTimeout: "counts", "ignored";
    EventType: "Normal", "Warning";
    EnforcementMode: "continuous", "bootstrap-only";
    ConditionPolicy: "allOf", "anyOf";
}
