//! Settings given as the name of a set, or one by one.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Name of a set of settings, or the settings that differ from the default.
pub(super) enum Settings<N, T> {
    Named(N),
    Changed(T),
}

impl<N: Default, T> Default for Settings<N, T> {
    fn default() -> Self {
        Self::Named(N::default())
    }
}

impl<'de, N: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Settings<N, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Visitor that reads either form without an intermediate copy, so that errors keep their position.
struct Either<N, T>(PhantomData<(N, T)>);

impl<'de, N: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Either<N, T> {
    type Value = Settings<N, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or settings by name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let name: StrDeserializer<'_, E> = name.into_deserializer();
        N::deserialize(name).map(Settings::Named)
    }

    fn visit_map<A: MapAccess<'de>>(self, settings: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(settings)).map(Settings::Changed)
    }
}
