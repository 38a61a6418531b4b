//! Names that an API server would make up, here the same at each run.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Largest length of what comes before the made part of a name, as in the API server.
const MAX_PREFIX: usize = 58;

/// Names that are taken, of pods or of claims, and the numbers that were given last.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<(String, String)>,
    last: BTreeMap<(String, String), u32>,
}

impl Names {
    pub(super) fn of<'m>(objects: impl Iterator<Item = &'m ObjectMeta>) -> Self {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let taken = objects.map(|metadata| (text(&metadata.namespace), text(&metadata.name))).collect();
        Self { taken, last: BTreeMap::new() }
    }

    /// Takes a name that Kubernetes fixes. Returns false if it is taken already.
    pub(super) fn take(&mut self, namespace: &str, name: &str) -> bool {
        self.taken.insert((namespace.to_owned(), name.to_owned()))
    }

    /// Makes a name of a prefix and the first number that gives one which is not taken.
    pub(super) fn make(&mut self, namespace: &str, prefix: &str) -> String {
        let end = prefix.char_indices().nth(MAX_PREFIX).map_or(prefix.len(), |(end, _)| end);
        let prefix = prefix.get(..end).unwrap_or_default();
        let key = (namespace.to_owned(), prefix.to_owned());
        loop {
            let last = self.last.entry(key.clone()).or_default();
            *last = last.saturating_add(1);
            let name = format!("{prefix}{last}");
            if self.take(namespace, &name) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_names_are_free_and_the_same_at_each_run() {
        let taken = ObjectMeta { namespace: Some("ns".into()), name: Some("web-2".into()), ..Default::default() };
        let made = || {
            let mut names = Names::of([&taken].into_iter());
            [names.make("ns", "web-"), names.make("ns", "web-"), names.make("other", "web-")]
        };
        assert_eq!(made(), ["web-1", "web-3", "web-1"]);
        assert_eq!(made(), made());
    }

    #[test]
    fn long_prefixes_are_cut_as_the_server_cuts_them() {
        let mut names = Names::default();
        assert_eq!(names.make("ns", &"x".repeat(80)), format!("{}1", "x".repeat(58)));
        assert!(!names.take("ns", &format!("{}1", "x".repeat(58))));
    }
}
