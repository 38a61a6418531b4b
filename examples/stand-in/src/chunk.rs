//! Lists in chunks: `limit` and `continue`.
//!
//! A real server answers all chunks of a list from one revision. This one answers the later chunks from what is stored then, and
//! gives them the version of the first: a watch from it shows what has changed in between.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::Object;
use crate::refusal::Refusal;
use crate::request::Options;
use crate::store::Store;

/// Place at which a list goes on. Its text is the token, which clients send back as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    /// Version of the whole list.
    rv: u64,
    /// Namespace and name of the last object of the chunk before.
    after: (String, String),
}

/// A chunk of a list.
pub(crate) struct Chunk<'o> {
    pub(crate) objects: Vec<&'o Arc<Value>>,
    /// Metadata of the list.
    pub(crate) metadata: Value,
}

impl<'o> Chunk<'o> {
    /// Takes the chunk that a request wants of all objects, which are sorted by namespace and name.
    ///
    /// # Errors
    /// The token is none of this server's, too old, or comes with a version.
    pub(crate) fn of(
        objects: impl Iterator<Item = &'o Arc<Value>>,
        store: &Store,
        options: &Options,
    ) -> Result<Self, Refusal> {
        let token = token(store, options)?;
        let version = token.as_ref().map_or_else(|| store.revision(), |token| token.rv);
        let is_left = |object: &&Arc<Value>| token.as_ref().is_none_or(|token| key(object) > token.after);
        let mut rest = objects.filter(is_left);
        let most = if options.limit == 0 { usize::MAX } else { options.limit };
        let objects: Vec<&Arc<Value>> = rest.by_ref().take(most).collect();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        let (left, last) = (rest.count(), objects.last());
        if let Some(last) = last.filter(|_| left > 0) {
            let token = Token { rv: version, after: key(last) };
            metadata.set_field("continue", serde_json::to_string(&token).unwrap_or_default());
            // How many a selector would leave is not counted.
            if !options.has_selector() {
                metadata.set_field("remainingItemCount", left);
            }
        }
        Ok(Self { objects, metadata })
    }
}

fn key(object: &Value) -> (String, String) {
    (object.metadata("namespace").to_owned(), object.metadata("name").to_owned())
}

fn token(store: &Store, options: &Options) -> Result<Option<Token>, Refusal> {
    if options.continue_from.is_empty() {
        let wanted: u64 = options.resource_version.parse().unwrap_or_default();
        let is_future = wanted > store.revision();
        return if is_future { Err(Refusal::future_version(wanted, store.revision())) } else { Ok(None) };
    }
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token: Token = serde_json::from_str(&options.continue_from)
        .map_err(|error| Refusal::bad_request(format!("invalid continue token: continue key is not valid: {error}")))?;
    if token.rv > store.revision() || store.since(token.rv).is_err() {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
            list without the continue parameter.";
        return Err(Refusal::new(410, "Expired", message));
    }
    Ok(Some(token))
}
