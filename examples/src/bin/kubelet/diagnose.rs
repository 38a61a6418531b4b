//! Command `diagnose`: likely causes of a problem with skipped node operations (KEP-5945, Troubleshooting).

use clap::{Args, ValueEnum};
use dra_alloc::skip::{SkipEvidence, SkipSymptom};
use dra_attrs::Profile;
use examples::manifest::{Manifests, name_of};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// Name of the claim, with its namespace if it is not "default"
    claim: String,
    /// Manifests with the claim and the slices: files, directories, - for stdin
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    /// Observed problem
    #[arg(long, value_enum, default_value_t = Symptom::None)]
    symptom: Symptom,
    /// Message of the scheduler or of the pod's event
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
}

/// Observed problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Symptom {
    /// None: only the objects are checked
    None,
    /// The claim is not allocated
    AllocationFailed,
    /// The pod does not start
    PrepareFailed,
    /// The driver was not called at the end of a pod, although the gate is off
    UnprepareSkipped,
    /// The container does not find its hardware
    HardwareMissing,
}

/// The claim is not in the manifests.
#[derive(Debug, thiserror::Error)]
#[error("no claim {0} in the manifests")]
pub(crate) struct NoClaim(String);

/// Returns the likely causes, one line each.
///
/// # Errors
/// The claim is not in the manifests.
pub(crate) fn diagnose(args: &DiagnoseArgs, manifests: &Manifests, profile: Profile) -> Result<String, NoClaim> {
    let full = format!("default/{}", args.claim);
    let claim = manifests.claims.iter().find(|claim| [&args.claim, &full].contains(&&name_of(&claim.metadata)));
    let claim = claim.ok_or_else(|| NoClaim(args.claim.clone()))?;
    let symptom = match args.symptom {
        Symptom::None => SkipSymptom::None,
        Symptom::AllocationFailed => SkipSymptom::AllocationFailed(&args.message),
        Symptom::PrepareFailed => SkipSymptom::PrepareFailed(&args.message),
        Symptom::UnprepareSkipped => SkipSymptom::UnprepareSkipped,
        Symptom::HardwareMissing => SkipSymptom::HardwareMissing,
    };
    let causes = SkipEvidence::diagnose(SkipEvidence { profile, slices: &manifests.slices, claim, symptom });
    let lines: Vec<String> = causes.iter().map(ToString::to_string).collect();
    Ok(if lines.is_empty() { "no cause found".to_owned() } else { lines.join("\n") })
}
