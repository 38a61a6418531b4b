//! Candidates: the nodes that kube-scheduler tries, and the one that it takes.
//!
//! Source: `DryRunPreemption`, `pickOneNodeForPreemption` of kube-scheduler 1.37.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Node;

use super::answer::{NoRoom, PreemptionAnswer, PreemptionCandidate, Room};
use super::asked::Asked;
use super::blockers::no_room;
use super::dry_run::{DryRun, dry_run};
use super::halt::{Halt, PreemptionError, Unanswered};
use super::harm_value::{start, weight};
use super::occupant::Occupant;
use super::reach::Reach;
use super::room::{identity, room, victims};
use super::site::Site;
use crate::search::stopped::Limit;

/// A node with its victims.
struct Candidate<'q> {
    node: &'q Node,
    dry_run: DryRun,
    victims: Vec<&'q Occupant<'q>>,
}

/// Chooses victims by kube-scheduler's rule on nodes, which are sorted by name.
pub(super) fn by_kube<'q>(asked: &Asked<'q>, nodes: &[&'q Node]) -> Result<PreemptionAnswer, PreemptionError> {
    let mut unanswered = Unanswered::default();
    let mut candidates: Vec<Candidate<'q>> = Vec::new();
    let stopped = collect(asked, nodes, &mut candidates, &mut unanswered).err();
    candidates.sort_by_key(|candidate| candidate.node.metadata.name.as_deref());
    let chosen = candidates.iter().min_by_key(|candidate| criteria(asked, candidate));
    let best = match chosen.map(|chosen| described(asked, &candidates, chosen)) {
        None => None,
        Some(Ok(best)) => best,
        Some(Err(Halt::Failed(error))) => return Err(error),
        Some(Err(Halt::Stopped(_))) => return Ok(PreemptionAnswer::NoRoom(NoRoom::Stopped { best: None })),
    };
    match (best.map(Box::new), stopped) {
        (Some(best), None) => Ok(PreemptionAnswer::Room(best)),
        (best, Some(_)) => Ok(PreemptionAnswer::NoRoom(NoRoom::Stopped { best })),
        (None, None) => no_room(asked, nodes, unanswered).map(PreemptionAnswer::NoRoom),
    }
}

/// Tries nodes until there are enough candidates, one of which breaks no budget.
fn collect<'q>(
    asked: &Asked<'q>,
    nodes: &[&'q Node],
    candidates: &mut Vec<Candidate<'q>>,
    unanswered: &mut Unanswered,
) -> Result<(), Limit> {
    let limit = asked.rules.candidates;
    let most = limit.map_or(usize::MAX, |limit| limit.count.get());
    let mut kept = [0, 0];
    for node in rotated(asked, nodes) {
        let found = site_of(asked, node).and_then(|site| {
            let found = dry_run(asked, &site)?;
            Ok(found.map(|dry_run| (victims(&site, &dry_run.out), dry_run)))
        });
        let (victims, dry_run) = match found {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(halt) => {
                unanswered.add(halt)?;
                continue;
            }
        };
        let [without, with] = &mut kept;
        let kept_alike = if dry_run.violations > 0 { with } else { without };
        if *kept_alike < most {
            *kept_alike += 1;
            candidates.push(Candidate { node, dry_run, victims });
        }
        if kept[0] > 0 && kept[0] + kept[1] >= most {
            break;
        }
    }
    Ok(())
}

fn site_of<'q>(asked: &Asked<'q>, node: &'q Node) -> Result<Site<'q>, Halt> {
    let reach = Reach::new(asked.rules.allocator, node)?;
    Ok(Site::of_pods(asked, node, &reach)?.narrowed(&reach))
}

/// Returns the nodes that may be tried, from the first one on that is asked for.
fn rotated<'q>(asked: &Asked<'q>, nodes: &[&'q Node]) -> Vec<&'q Node> {
    let all = asked.rules.view.nodes();
    let first = asked.rules.candidates.map_or(0, |limit| usize::from(limit.first) % all.len().max(1));
    let name = all.get(first).and_then(|node| node.metadata.name.as_deref());
    let begin = nodes.partition_point(|node| node.metadata.name.as_deref() < name);
    let (before, after) = nodes.split_at_checked(begin).unwrap_or((&[], nodes));
    after.iter().chain(before).copied().collect()
}

/// Returns the numbers by which kube-scheduler compares candidates: less is better.
fn criteria(asked: &Asked<'_>, candidate: &Candidate<'_>) -> impl Ord + use<> {
    let victims = &candidate.victims;
    let highest = victims.first().map_or(i32::MIN, |victim| victim.priority);
    let sum: i64 = victims.iter().map(|victim| weight(victim)).sum();
    let starts = victims.iter().filter(|victim| victim.priority == highest).map(|victim| start(asked, victim));
    (candidate.dry_run.violations, highest, sum, victims.len(), Reverse(starts.min()))
}

/// Describes the room on the chosen node, with all candidates.
fn described<'q>(asked: &Asked<'q>, all: &[Candidate<'q>], chosen: &Candidate<'q>) -> Result<Option<Room>, Halt> {
    let site = site_of(asked, chosen.node)?;
    let Some(room) = room(asked, &site, &chosen.dry_run.out, chosen.dry_run.violations)? else { return Ok(None) };
    let candidates = all.iter().map(|candidate| PreemptionCandidate {
        node: candidate.node.metadata.name.clone().unwrap_or_default(),
        victims: candidate.victims.iter().map(|pod| identity(asked, pod)).collect(),
        violations: candidate.dry_run.violations,
    });
    Ok(Some(Room { candidates: candidates.collect(), ..room }))
}
