//! Values that are a text on the wire.

/// Implements `Serialize` by `Display`, and `Deserialize` by a function of the text.
macro_rules! serde_as_text {
    ($value:ty, $read:expr) => {
        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                $read(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use serde_as_text;
