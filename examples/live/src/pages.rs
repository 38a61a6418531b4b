//! Lists that come in pages.

use std::fmt;

use kube::api::ListParams;
use kube::{Api, Error};
use serde::de::DeserializeOwned;

use super::retry::answered;

/// Objects in one answer.
const PAGE: u32 = 500;

/// Lists the objects that a selection has, page by page, however few the server puts into one.
///
/// # Errors
/// A call fails, or the list has become too old to go on with.
pub async fn list_selected<K>(api: &Api<K>, selection: &ListParams) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let (mut objects, mut page) = (Vec::new(), selection.clone().limit(PAGE));
    loop {
        let list = answered(|| api.list(&page)).await.outcome?;
        objects.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}
