//! The least moves by brute force, on random clusters of equal devices.

use dra_alloc::consolidation::{MoveProof, MoveRules, MovesAnswer, NoMovesError};

use super::world::{Random, World, carry_out};

const MOST_MOVES: usize = 3;

/// Returns true if sizes have room in what is free.
fn fit(sizes: &[usize], free: &mut [usize]) -> bool {
    let Some((size, others)) = sizes.split_first() else { return true };
    (0..free.len()).any(|node| {
        if free[node] < *size {
            return false;
        }
        free[node] -= size;
        let fits = fit(others, free);
        free[node] += size;
        fits
    })
}

/// Returns the least number of devices that have to move so that a size fits.
fn least(cluster: &[(usize, Vec<usize>)], wanted: usize) -> Option<usize> {
    let units: Vec<(usize, usize)> =
        cluster.iter().enumerate().flat_map(|(node, (_, sizes))| sizes.iter().map(move |size| (node, *size))).collect();
    let sets = (0_u32..1 << units.len()).filter(|set| set.count_ones() as usize <= MOST_MOVES);
    let costs = sets.filter_map(|set| {
        let chosen: Vec<(usize, usize)> =
            units.iter().enumerate().filter(|(unit, _)| set & 1 << unit != 0).map(|(_, unit)| *unit).collect();
        let mut free: Vec<usize> =
            cluster.iter().map(|(devices, sizes)| devices - sizes.iter().sum::<usize>()).collect();
        for (node, size) in &chosen {
            free[*node] += size;
        }
        let sizes: Vec<usize> = std::iter::once(wanted).chain(chosen.iter().map(|(_, size)| *size)).collect();
        fit(&sizes, &mut free).then(|| chosen.iter().map(|(_, size)| size).sum())
    });
    costs.min()
}

#[test]
fn plans_are_the_least_and_can_be_carried_out() {
    let (mut moved, mut chains, mut none, mut as_it_is) = (0, 0, 0, 0);
    for seed in 0..500 {
        let random = &mut Random(seed);
        let mut left = 10;
        let cluster: Vec<(usize, Vec<usize>)> = (0..random.between(2, if seed % 2 == 0 { 8 } else { 4 }))
            .map(|_| {
                let devices = if seed % 2 == 0 { random.between(3, 8) } else { 8 };
                let (mut sizes, mut free) = (Vec::new(), devices);
                while left > 0 && free > 0 && random.below(8) > 0 {
                    let size = random.between(1, free.min(if seed % 2 == 0 { 4 } else { 6 }));
                    sizes.push(size);
                    (free, left) = (free - size, left - 1);
                }
                (devices, sizes)
            })
            .collect();
        // Mostly a little more than any node has free.
        let free = cluster.iter().map(|(devices, sizes)| devices - sizes.iter().sum::<usize>()).max().unwrap();
        let wanted = if random.below(4) == 0 { random.between(2, 8) } else { (free + random.between(1, 2)).min(8) };
        let mut world = World::with_devices(&cluster);
        world.wait("t", wanted);
        let expected = least(&cluster, wanted);
        match world.moves(&["t"], &MoveRules::default().with_most_moves(MOST_MOVES)) {
            MovesAnswer::Moves(plan) => {
                assert_eq!(plan.proof, MoveProof::Least, "seed {seed}");
                assert_eq!(Some(plan.cost), expected.map(|cost| cost as u64), "seed {seed}: {cluster:?} {wanted}");
                let held = carry_out(&world, &plan);
                assert_eq!(held["t"].len(), wanted);
                assert_eq!(held.len(), world.pods.len());
                let hosts: Vec<_> = plan.waves.iter().flatten().map(|one| one.from.clone()).collect();
                chains += usize::from(hosts.iter().any(|from| *from != plan.placed[0].to));
                *(if plan.waves.is_empty() { &mut as_it_is } else { &mut moved }) += 1;
            }
            MovesAnswer::NoMoves(reason) => {
                assert_eq!(expected, None, "seed {seed}: {cluster:?} {wanted}: {reason}");
                let free: usize = cluster.iter().map(|(devices, sizes)| devices - sizes.iter().sum::<usize>()).sum();
                let fits_empty = cluster.iter().any(|(devices, _)| *devices >= wanted);
                let is_right = match reason {
                    NoMovesError::NotEnough { .. } => free < wanted,
                    NoMovesError::Hopeless => !fits_empty,
                    NoMovesError::NoPlace { .. } => fits_empty && free >= wanted,
                    _ => false,
                };
                assert!(is_right, "seed {seed}: {cluster:?} {wanted}: {reason}");
                none += 1;
            }
        }
    }
    assert!(moved > 30 && chains > 0 && none > 50 && as_it_is > 30, "{moved} {chains} {none} {as_it_is}");
}
