//! Settings given as the name of a set, or one by one; gates by name.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use dra_attrs::{GateError, GateSet, Profile};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads gates by name. A gate may have its name in any profile, or none here; a name that Kubernetes does not have
/// is an error. Names joined by `+` are set together.
pub(super) fn gates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, bool>, D::Error> {
    let named = BTreeMap::<String, bool>::deserialize(deserializer)?;
    named.keys().flat_map(|names| names.split('+')).try_for_each(known).map_err(D::Error::custom)?;
    Ok(named)
}

/// Reads gates that may be absent, as [`gates`] does.
pub(super) fn optional_gates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, bool>>, D::Error> {
    gates(deserializer).map(Some)
}

fn known(name: &str) -> Result<(), GateError> {
    let kep = GateSet::find(name, Profile::Kep);
    kep.or_else(|_| GateSet::find(name, Profile::V1_37)).map(|_| ())
}

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
