//! Lists in chunks: `limit` and `continue`.
//!
//! A real server answers all chunks of a list from one revision. This one answers the later chunks from what is stored then, and
//! gives them the version of the first: a watch from it shows what has changed in between.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use object_patches::{Object, syntax_error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::options::Options;
use crate::refusal::Refusal;
use crate::request::Target;
use crate::store::Store;

/// Encoding of tokens, read as Go reads it: the last bits may be any.
const ENCODING: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Version of tokens.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Version in a token that goes on with whatever there is.
const ANY_VERSION: i64 = -1;

/// Place at which a list goes on, as a real server writes it into a token.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    /// Version of the whole list.
    rv: i64,
    /// Key of the last object of the chunk before, and a zero after it.
    start: String,
}

/// Chunk that a request goes on with.
struct From {
    version: u64,
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
        target: &Target,
        options: &Options,
    ) -> Result<Self, Refusal> {
        let from = from(store, target, options)?;
        let version = from.as_ref().map_or_else(|| store.revision(), |from| from.version);
        let is_left = |object: &&Arc<Value>| {
            from.as_ref().is_none_or(|From { after: (namespace, name), .. }| {
                (object.metadata("namespace"), object.metadata("name")) > (namespace.as_str(), name.as_str())
            })
        };
        let mut rest = objects.filter(is_left);
        let most = if options.limit == 0 { usize::MAX } else { options.limit };
        let objects: Vec<&Arc<Value>> = rest.by_ref().take(most).collect();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        let (left, last) = (rest.count(), objects.last());
        if let Some(last) = last.filter(|_| left > 0) {
            metadata.set_field("continue", encoded(&key(last), i64::try_from(version).unwrap_or(i64::MAX)));
            // How many a selector would leave is not counted.
            if !options.has_selector() {
                metadata.set_field("remainingItemCount", left);
            }
        }
        Ok(Self { objects, metadata })
    }
}

fn encoded((namespace, name): &(String, String), rv: i64) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    let token = Token { v: TOKEN_VERSION.to_owned(), rv, start: format!("{namespace}{slash}{name}\0") };
    ENCODING.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn key(object: &Value) -> (String, String) {
    (object.metadata("namespace").to_owned(), object.metadata("name").to_owned())
}

fn from(store: &Store, target: &Target, options: &Options) -> Result<Option<From>, Refusal> {
    let wanted = options.version(target)?;
    if options.continue_from.is_empty() {
        if wanted > store.revision() {
            return Err(Refusal::future_version(wanted, store.revision()));
        }
        if options.wants_exact_version() && wanted != store.revision() {
            // Old states are not kept: a real server has them until it compacts.
            return Err(Refusal::expired(wanted, store.revision()));
        }
        return Ok(None);
    }
    if wanted != 0 {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = read(&options.continue_from).map_err(|problem| {
        Refusal::bad_request(format!("invalid continue token: continue key is not valid{problem}"))
    })?;
    let start = token.start.trim_end_matches('\0');
    let (namespace, name) = start.rsplit_once('/').unwrap_or(("", start));
    let namespace = target.namespace.as_deref().unwrap_or(namespace);
    let after = (namespace.to_owned(), name.to_owned());
    let version = if token.rv == ANY_VERSION { store.revision() } else { u64::try_from(token.rv).unwrap_or(u64::MAX) };
    if version > store.revision() || store.since(version).is_err() {
        return Err(Refusal::old_continue(&encoded(&after, ANY_VERSION)));
    }
    Ok(Some(From { version, after }))
}

/// Reads a token; the error is what a real server says after "continue key is not valid".
fn read(text: &str) -> Result<Token, String> {
    let bytes = ENCODING.decode(text).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => at,
            base64::DecodeError::InvalidLength(length) => length,
            base64::DecodeError::InvalidPadding => text.len(),
        };
        format!(": illegal base64 data at input byte {at}")
    })?;
    let token: Token = serde_json::from_slice(&bytes)
        .map_err(|error| format!(": {}", syntax_error(&bytes).unwrap_or_else(|| error.to_string())))?;
    if token.v != TOKEN_VERSION {
        return Err(format!(": server does not recognize this encoded version {}", token.v));
    }
    if token.rv == 0 {
        return Err(format!(": incorrect encoded start resourceVersion (version {TOKEN_VERSION})"));
    }
    match token.start.as_str() {
        "" => Err(format!(": encoded start key empty (version {TOKEN_VERSION})")),
        start if start.split('/').any(|part| matches!(part, "" | "." | "..")) => Err(format!(": {start}")),
        _ => Ok(token),
    }
}
