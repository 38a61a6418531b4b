//! The question `plan`: what a cluster would do with manifests.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use dra_live::connect::Cluster;
use dra_live::failure::LiveError;
use dra_live::listing::{list, list_if_allowed};
use examples::live::devices::list_devices_and_pods;
use examples::manifest::{Manifests, TemplatePath};
use examples::objective_file::objective_of;
use examples::output::{Format, OutputError, as_json, as_yaml, say};
use examples::plan::{Plan, Rules, plan, plan_best};
use examples::preempt::Who;

use super::{Args, DraError, NAME};

/// Namespace of objects that are written without one.
const NAMESPACE: &str = "default";

/// Flags of `plan`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// YAML or JSON files, directories, - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Place of the pod template in objects of a kind, such as MPIJob=spec.mpiReplicaSpecs.*.template; may be repeated
    #[arg(long = "pod-template", value_name = "KIND=PATH")]
    templates: Vec<TemplatePath>,
    /// Say who would have to go by each rule, or who is in the way
    #[arg(long)]
    who: bool,
    /// File with the rule by which devices are chosen, levels of terms as JSON; the first devices that fit without it
    #[arg(long, value_name = "FILE")]
    objective: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    output: PlanFormat,
}

/// Format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// Lines of at most 80 columns, in color on a terminal
    Table,
    /// An object
    Json,
}

/// Returns the detail that a flag asks for.
pub(crate) const fn who(is_whole: bool) -> Who {
    if is_whole { Who::Whole } else { Who::Room }
}

impl PlanArgs {
    /// Reads the manifests.
    pub(crate) fn read(&self, args: &Args) -> Manifests {
        let read = Manifests::of_release(args.rules.profile).with_templates(self.templates.clone());
        let mut manifests = read.in_namespace(Some(args.namespace().to_owned()));
        for file in &self.files {
            manifests.read_argument(file);
        }
        let said = manifests.notes.iter().filter(|note| !note.is_unknown_field);
        said.for_each(say);
        manifests
    }

    /// Adds the objects of a cluster that the manifests do not replace.
    pub(crate) async fn add_cluster(&self, manifests: &mut Manifests, cluster: &Cluster) -> Result<(), LiveError> {
        let mut objects = list_devices_and_pods(cluster).await?;
        objects.nodes = list(&cluster.client, "nodes").await?;
        objects.classes = list(&cluster.client, "deviceclasses").await?;
        objects.claim_templates = list(&cluster.client, "resourceclaimtemplates").await?;
        objects.priority_classes = list_if_allowed(&cluster.client, "priorityclasses").await?;
        objects.budgets = list_if_allowed(&cluster.client, "poddisruptionbudgets").await?;
        let waiting = manifests.add_objects(objects);
        if waiting > 0 {
            say(&format_args!("{NAME}: {waiting} pods of the cluster wait already, and may come first"));
        }
        Ok(())
    }
}

impl Args {
    /// Returns the namespace of objects that are written without one.
    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(NAMESPACE)
    }

    /// Explains the pods of manifests that have no place: all, or those of a name or of a workload with the name.
    pub(crate) fn why_in_files(
        &self,
        files: &[String],
        name: Option<&str>,
        who: Who,
        output: Format,
    ) -> Result<(String, bool), DraError> {
        let of_files = PlanArgs {
            files: files.to_vec(),
            templates: Vec::new(),
            who: false,
            objective: None,
            output: PlanFormat::Table,
        };
        let rules = Rules { profile: self.rules.profile, gates: self.gates()?, who };
        let mut plan: Plan = plan(of_files.read(self), rules)?;
        plan.keep_waiting(name.map(|name| name.rsplit('/').next().unwrap_or(name)));
        let text = match output {
            Format::Table => plan.text(self.namespace()),
            Format::Json => as_json(&plan)?,
            Format::Yaml => as_yaml(&[serde_json::to_value(&plan).map_err(OutputError::from)?])?,
        };
        Ok((text, plan.is_whole()))
    }

    /// Returns the plan as text, and true if all pods have a place.
    pub(crate) fn planned(&self, args: &PlanArgs, manifests: Manifests) -> Result<(String, bool), DraError> {
        let rules = Rules { profile: self.rules.profile, gates: self.gates()?, who: who(args.who) };
        let objective = args.objective.as_deref().map(objective_of).transpose()?.unwrap_or_default();
        let plan: Plan = plan_best(manifests, rules, &objective)?;
        let text = match args.output {
            PlanFormat::Table => plan.text(self.namespace()),
            PlanFormat::Json => as_json(&plan)?,
        };
        Ok((text, plan.is_whole()))
    }
}
