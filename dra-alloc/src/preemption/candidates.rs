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
use super::view::{first_name, node_name};
use crate::search::stopped::Limit;

/// Nodes with their victims: one, or those of a gang.
struct Candidate<'s, 'q> {
    nodes: &'s [&'q Node],
    dry_run: DryRun,
    victims: Vec<&'q Occupant<'q>>,
}

/// Chooses victims by kube-scheduler's rule on sets of nodes, which are sorted by the names of their first ones.
pub(super) fn by_kube<'q>(asked: &Asked<'q>, sites: &[&[&'q Node]]) -> Result<PreemptionAnswer, PreemptionError> {
    let mut unanswered = Unanswered::default();
    let mut candidates: Vec<Candidate<'_, 'q>> = Vec::new();
    let stopped = collect(asked, sites, &mut candidates, &mut unanswered).err();
    candidates.sort_by_key(|candidate| first_name(candidate.nodes));
    let chosen = candidates.iter().min_by_key(|candidate| criteria(asked, candidate));
    let best = match chosen.map(|chosen| described(asked, &candidates, chosen)) {
        None => None,
        Some(Ok(best)) => best,
        Some(Err(Halt::Failed(error))) => return Err(error),
        Some(Err(Halt::Stopped(_) | Halt::Open)) => {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::Stopped { best: None }));
        }
    };
    match (best.map(Box::new), stopped) {
        (Some(best), None) => Ok(PreemptionAnswer::Room(best)),
        (best, Some(_)) => Ok(PreemptionAnswer::NoRoom(NoRoom::Stopped { best })),
        (None, None) => no_room(asked, sites, unanswered).map(PreemptionAnswer::NoRoom),
    }
}

/// Tries nodes until there are enough candidates, one of which breaks no budget.
fn collect<'s, 'q>(
    asked: &Asked<'q>,
    sites: &[&'s [&'q Node]],
    candidates: &mut Vec<Candidate<'s, 'q>>,
    unanswered: &mut Unanswered,
) -> Result<(), Limit> {
    let limit = asked.rules.candidates;
    let most = limit.map_or(usize::MAX, |limit| limit.count.get());
    let mut kept = [0, 0];
    for nodes in rotated(asked, sites) {
        let found = site_of(asked, nodes).and_then(|site| {
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
            candidates.push(Candidate { nodes, dry_run, victims });
        }
        if kept[0] > 0 && kept[0] + kept[1] >= most {
            break;
        }
    }
    Ok(())
}

fn site_of<'q>(asked: &Asked<'q>, nodes: &[&'q Node]) -> Result<Site<'q>, Halt> {
    Ok(Site::of_pods(asked, Reach::new(asked.rules.allocator, nodes)?)?.narrowed())
}

/// Returns the nodes that may be tried, from the first one on that is asked for.
fn rotated<'s, 'q>(asked: &Asked<'q>, sites: &[&'s [&'q Node]]) -> Vec<&'s [&'q Node]> {
    let all = asked.rules.view.nodes();
    let first = asked.rules.candidates.map_or(0, |limit| usize::from(limit.first) % all.len().max(1));
    let name = all.get(first).map(|node| node_name(node)).unwrap_or_default();
    let begin = sites.partition_point(|nodes| first_name(nodes) < name);
    let (before, after) = sites.split_at_checked(begin).unwrap_or((&[], sites));
    after.iter().chain(before).copied().collect()
}

/// Returns the numbers by which kube-scheduler compares candidates: less is better.
fn criteria(asked: &Asked<'_>, candidate: &Candidate<'_, '_>) -> impl Ord + use<> {
    let victims = &candidate.victims;
    let highest = victims.first().map_or(i32::MIN, |victim| victim.priority);
    let sum: i64 = victims.iter().map(|victim| weight(victim)).sum();
    let starts = victims.iter().filter(|victim| victim.priority == highest).map(|victim| start(asked, victim));
    (candidate.dry_run.violations, highest, sum, victims.len(), Reverse(starts.min()))
}

/// Describes the room on the chosen nodes, with all candidates that are one node.
fn described<'q>(
    asked: &Asked<'q>,
    all: &[Candidate<'_, 'q>],
    chosen: &Candidate<'_, 'q>,
) -> Result<Option<Room>, Halt> {
    let site = site_of(asked, chosen.nodes)?;
    let Some(room) = room(asked, &site, &chosen.dry_run.out, chosen.dry_run.violations)? else { return Ok(None) };
    let candidates = all.iter().filter_map(|candidate| {
        let [node] = candidate.nodes else { return None };
        Some(PreemptionCandidate {
            node: node_name(node).to_owned(),
            victims: candidate.victims.iter().map(|pod| identity(asked, pod)).collect(),
            violations: candidate.dry_run.violations,
        })
    });
    Ok(Some(Room { candidates: candidates.collect(), ..room }))
}
