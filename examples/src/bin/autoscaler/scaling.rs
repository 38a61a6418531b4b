//! Questions about nodes that come and go: what one more node would take, what can go, what pods leave behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Args;
use dra_alloc::autoscaler::{
    Departure, ExpansionOption, NodeTemplate, NodeTemplateError, ScaleSimulator, ScaleUpError, release,
};
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ClaimLookup, ClaimTracker, FitQuestion, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Classes, DeviceId, GateSet, Inventory, StateError, allocated_devices};
use dra_attrs::{Component, GateError, Profile};
use examples::candidates::{claims_of, is_pending, refusal};
use examples::feature_gates::{DEVICE_GATES, feature_gates, say_uncounted};
use examples::manifest::{Manifests, name_of};
use examples::output::say;
use examples::placing::with_budget;
use examples::release_args::ReleaseArgs;
use examples::workload::node_of;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use nnn::view::ClusterViewError;

use super::answer::{Answer, Released, Simulated};
use super::cluster_parts::ClusterParts;
use super::removal::{consolidate, scale_down};

/// Flags of questions about devices. Of a pod's other wishes only node selectors, taints and cordoned nodes are looked at.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScalingArgs {
    /// Say which pending pods one more node would take: a file with a Node and its slices, and its price; the best of
    /// several first
    #[arg(long, value_name = "FILE[=PRICE]", group = "question")]
    simulate_group: Vec<String>,
    /// Attribute (domain/name) whose value is not known before the node exists
    #[arg(long, value_name = "ATTRIBUTE", requires = "simulate_group")]
    unknown: Vec<String>,
    /// Say which nodes can go together, with the devices of all their pods found elsewhere: 1,000 candidates at most
    #[arg(long, group = "question")]
    scale_down: bool,
    /// Plan which nodes can be emptied, those with the fewest devices in use first: the moves of pods in their order. Annotations
    /// that forbid a move count, and disruption budgets
    #[arg(long, group = "question")]
    consolidate: bool,
    /// Say what becomes free when a pod is removed
    #[arg(long, value_name = "NAMESPACE/NAME", group = "question")]
    remove_pod: Vec<String>,
    /// Rules to follow.
    #[command(flatten)]
    pub(crate) rules: ReleaseArgs,
    /// Feature gates of the scheduler, as A=true,B=false
    #[arg(long, value_name = "GATES", default_value = "")]
    feature_gates: String,
}

/// Pods that an answer is about.
#[cfg(feature = "live")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// All pods, and all nodes.
    All,
    /// Those that wait for a node.
    Pending,
    /// Those with these names.
    Named(&'a [String]),
}

/// Question of a command line, with what its files say.
pub(crate) struct Question<'a> {
    args: &'a ScalingArgs,
    gates: GateSet,
    /// Templates with the names and prices of their groups.
    templates: Vec<(String, u64, NodeTemplate)>,
    selectors: SelectorCache,
}

/// Reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScalingError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("--simulate-group {file}: the price is not a whole number: {price}")]
    Price { file: String, price: String },
    #[error("--simulate-group {file}: one Node is needed, {nodes} are there")]
    Nodes { file: String, nodes: usize },
    #[error("--simulate-group {file}: {source}")]
    Template { file: String, source: NodeTemplateError },
    #[error("--simulate-group: {0}")]
    ScaleUp(#[from] ScaleUpError),
    #[error("--remove-pod {0}: there is no such pod")]
    NoPod(String),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    View(#[from] ClusterViewError),
}

impl ScalingArgs {
    /// Reads the question of the command line; `None` if there is none.
    pub(crate) fn question(&self) -> Result<Option<Question<'_>>, ScalingError> {
        if !self.scale_down && !self.consolidate && self.simulate_group.is_empty() && self.remove_pod.is_empty() {
            return Ok(None);
        }
        let (gates, templates) = (self.gates()?, self.templates()?);
        say_uncounted("autoscaler", gates);
        Ok(Some(Question { args: self, gates, templates, selectors: SelectorCache::default() }))
    }

    /// Reads the feature gates.
    pub(crate) fn gates(&self) -> Result<GateSet, ScalingError> {
        Ok(feature_gates(&self.feature_gates, self.rules.profile, &DEVICE_GATES)?)
    }

    /// Reads the templates with their files and prices.
    fn templates(&self) -> Result<Vec<(String, u64, NodeTemplate)>, ScalingError> {
        let read = |group: &String| {
            let (file, price) = group.rsplit_once('=').unwrap_or((group, "1"));
            let parsed = price.parse();
            let price = parsed.map_err(|_| ScalingError::Price { file: file.to_owned(), price: price.to_owned() })?;
            let mut manifests = Manifests::of_release(self.rules.profile);
            manifests.read_argument(file);
            manifests.problems.iter().chain(&manifests.notes).for_each(say);
            manifests.ignored_lines("autoscaler", &["Node", "ResourceSlice"]).iter().for_each(say);
            let [node] = manifests.nodes.as_slice() else {
                return Err(ScalingError::Nodes { file: file.to_owned(), nodes: manifests.nodes.len() });
            };
            let template = NodeTemplate::new(node.clone(), manifests.slices.iter().cloned());
            let template = template.map_err(|source| ScalingError::Template { file: file.to_owned(), source })?;
            let name = Path::new(file).file_stem().map(|name| name.to_string_lossy().into_owned());
            Ok((name.unwrap_or_default(), price, template.with_unknown_attributes(&self.unknown)))
        };
        self.simulate_group.iter().map(read).collect()
    }
}

#[cfg(feature = "live")]
impl Question<'_> {
    /// Returns the pods that an answer is about. Other ones change nothing of it, and need not be in the cluster that it is
    /// about; nor need nodes, unless it is about all.
    pub(crate) fn subject(&self) -> Subject<'_> {
        match self.args.remove_pod.as_slice() {
            [] if self.args.scale_down || self.args.consolidate => Subject::All,
            [] => Subject::Pending,
            names => Subject::Named(names),
        }
    }

    /// Returns true if disruption budgets make a difference.
    pub(crate) const fn reads_budgets(&self) -> bool {
        self.args.consolidate
    }

    /// Returns true if the node of a template has one of the names.
    pub(crate) fn has_template_of(&self, nodes: &BTreeSet<String>) -> bool {
        let mut names = self.templates.iter().filter_map(|(.., template)| template.node().metadata.name.as_ref());
        names.any(|name| nodes.contains(name))
    }
}

impl Question<'_> {
    /// Returns the nodes that the question would add.
    pub(crate) fn new_nodes(&self) -> Vec<&Node> {
        self.templates.iter().map(|(.., template)| template.node()).collect()
    }

    /// Returns the pods that wait for a new node, those of daemon sets first: the node runs them in any case. Their pods for
    /// nodes that are there do not wait for another one.
    fn pending<'p>(&self, pods: Vec<&'p Pod>) -> Vec<&'p Pod> {
        let new: BTreeSet<&str> = self.new_nodes().iter().filter_map(|node| node.metadata.name.as_deref()).collect();
        let waiting = pods.into_iter().filter(|pod| is_pending(pod, None));
        let (daemons, others): (Vec<&Pod>, Vec<&Pod>) = waiting.partition(|pod| node_of(pod).is_some());
        let on_new = daemons.into_iter().filter(|pod| node_of(pod).is_some_and(|node| new.contains(node)));
        on_new.chain(others).collect()
    }

    /// Answers the question for the cluster of manifests.
    pub(crate) fn answer_manifests(&self, manifests: &Manifests, now: Timestamp) -> Result<Answer, ScalingError> {
        let mut claims = ClaimTracker::new(Component::new(Profile::V1_37, self.gates));
        for claim in &manifests.claims {
            claims.observe(with_uid(claim))?;
        }
        let rules = manifests.taint_rules.iter().cloned();
        let cluster = ClusterParts {
            nodes: manifests.nodes.iter().collect(),
            pods: manifests.pods.iter().collect(),
            pod_groups: &manifests.pod_groups,
            budgets: manifests.budgets.iter().collect(),
            inventory: &mut Inventory::new(manifests.slices.iter().cloned()).with_taint_rules(rules),
            classes: &Classes::new(manifests.classes.iter().cloned()),
            claims: &claims,
        };
        self.answer(cluster, now)
    }

    /// Answers the question.
    pub(crate) fn answer(&self, cluster: ClusterParts<'_>, now: Timestamp) -> Result<Answer, ScalingError> {
        if !self.args.remove_pod.is_empty() {
            return self.released(&cluster).map(Answer::Claims);
        }
        let fit = |question: &FitQuestion<'_>| match refusal(question.pod(), question.node()) {
            Some(reason) => Err(reason),
            None => Ok(()),
        };
        with_budget(|budget| {
            let options = PodOptions::new(Component::new(self.args.rules.profile, self.gates));
            let simulator = ScaleSimulator::new(cluster.classes, &self.selectors, options, now)
                .with_budget(budget)
                .with_groups(cluster.pod_groups)
                .with_fit(&fit);
            if self.args.scale_down {
                return Ok(Answer::Nodes(scale_down(&simulator, cluster)?));
            }
            if self.args.consolidate {
                return Ok(Answer::Moves(consolidate(&simulator, cluster)?));
            }
            let priced = self.templates.iter().map(|(_, price, template)| (template, *price));
            let pods = self.pending(cluster.pods);
            // Pods of daemon sets for the other templates' nodes.
            let fixed = pods.iter().filter_map(|pod| Some((name_of(&pod.metadata), node_of(pod)?)));
            let fixed: BTreeMap<String, &str> = fixed.collect();
            let options = simulator.expansion_options(cluster.inventory, cluster.claims, priced, &pods)?;
            let named = |option: &ExpansionOption<'_>| {
                let group = self.templates.iter().find(|(.., template)| std::ptr::eq(template, option.template));
                group.map(|(name, ..)| name.clone()).unwrap_or_default()
            };
            let simulated = options.iter().map(|option| Simulated::new(named(option), option, &fixed));
            Ok(Answer::Groups(simulated.collect()))
        })
    }

    fn released(&self, cluster: &ClusterParts<'_>) -> Result<Vec<Released>, ScalingError> {
        let find = |name: &String| {
            let found = cluster.pods.iter().find(|pod| name_of(&pod.metadata) == *name);
            found.copied().ok_or_else(|| ScalingError::NoPod(name.clone()))
        };
        let pods: Vec<&Pod> = self.args.remove_pod.iter().map(find).collect::<Result<_, _>>()?;
        let named: BTreeSet<ClaimKey> = pods.iter().flat_map(|pod| claims_of(pod)).collect();
        let claims = named.iter().filter_map(|key| cluster.claims.claim(&key.namespace, &key.name));
        let released = release(pods, claims.map(|claim| &**claim), Departure::Removed);
        let claims = released.iter().map(|(claim, release)| {
            let ClaimKey { namespace, name } = ClaimKey::from_metadata(&claim.metadata);
            let before = cluster.claims.claim(&namespace, &name);
            let left = devices_of(claim);
            let mut free = before.map(|before| devices_of(before)).unwrap_or_default();
            free.retain(|device| !left.contains(device));
            Released { claim: name_of(&claim.metadata), change: release.as_str(), free }
        });
        Ok(claims.collect())
    }
}

/// Returns a claim with a UID: manifests rarely have one, and memory is by UID.
fn with_uid(claim: &ResourceClaim) -> ResourceClaim {
    let mut claim = claim.clone();
    let name = name_of(&claim.metadata);
    claim.metadata.uid.get_or_insert(name);
    claim
}

fn devices_of(claim: &ResourceClaim) -> Vec<String> {
    let results = allocated_devices(claim).iter();
    results.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device).to_string()).collect()
}
