//! What holds for every cluster.

use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::compute::Cluster;
use poolstatus::outcome::Outcome;
use poolstatus::report::Report;
use poolstatus::request::Query;
use proptest::prelude::*;

use crate::cluster::{kep_counts, now, shipped_counts};
use crate::random::{Objects, objects, query};

fn report(objects: &Objects, query: &Query) -> Report {
    Cluster::new(&objects.slices, &objects.claims).with_taint_rules(&objects.rules).report(query, now())
}

fn claims(objects: &mut Objects) -> impl Iterator<Item = &mut ResourceClaim> {
    objects.claims.iter_mut().filter(|claim| claim.status.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// The order of the objects does not matter.
    #[test]
    fn any_order(objects in objects(), query in query(), seed in any::<u64>()) {
        let mut shuffled = objects.clone();
        shuffle(&mut shuffled.slices, seed);
        shuffle(&mut shuffled.claims, seed / 3);
        shuffle(&mut shuffled.rules, seed / 7);
        prop_assert_eq!(report(&objects, &query), report(&shuffled, &query));
    }

    /// The KEP's counts add up; no count exceeds the total where it should not.
    #[test]
    fn counts(objects in objects(), query in query()) {
        // req: 5677-CALC-4
        let report = report(&objects, &query);
        for [total, allocated, available, unavailable] in kep_counts(&report) {
            prop_assert_eq!(total, allocated + available + unavailable);
            prop_assert!(allocated >= 0 && available >= 0 && unavailable >= 0);
        }
        for [total, allocated, available, unavailable] in shipped_counts(&report) {
            prop_assert_eq!(available, (total - allocated - unavailable).max(0));
            prop_assert!(available <= total && unavailable <= total);
        }
        let partitions = report.pools.iter().flat_map(|pool| pool.partitions.iter().flatten());
        for partition in partitions {
            prop_assert!(0 <= partition.allocatable && partition.allocatable <= partition.total);
        }
    }

    /// No more pools are listed than match, or than asked for; both forms list the same.
    #[test]
    fn pools(objects in objects(), query in query()) {
        let report = report(&objects, &query);
        let kep = report.kep();
        let (Outcome::Ready(status) | Outcome::Incomplete { preview: status, .. }) = report.shipped() else {
            return Err(TestCaseError::fail("failed"));
        };
        let shipped = status.pools.unwrap_or_default();
        prop_assert!(kep.pools.len() <= report.matching && kep.pools.len() <= query.limit());
        prop_assert_eq!(kep.truncated, kep.pools.len() < report.matching);
        prop_assert_eq!(kep.total_matching_pools, status.pool_count);
        prop_assert!(shipped.iter().map(|pool| &pool.pool_name).eq(kep.pools.iter().map(|pool| &pool.pool_name)));
        prop_assert!(kep.pools.is_sorted_by(|left, right| left.pool_name < right.pool_name));
        prop_assert!(kep.validation_errors.len() <= 10);
        prop_assert!(kep.validation_errors.iter().all(|error| error.chars().count() <= 256));
        let errors = shipped.iter().filter_map(|pool| pool.validation_error.as_ref());
        prop_assert!(errors.into_iter().all(|error| error.len() <= 256));
    }

    /// Another result with admin access changes nothing.
    #[test]
    fn admin_access(mut objects in objects(), query in query(), device in 0..7_u8) {
        let before = report(&objects, &query);
        for claim in claims(&mut objects) {
            let devices = claim.status.as_mut().and_then(|status| status.allocation.as_mut()?.devices.as_mut());
            let mut admin = k8s_openapi::api::resource::v1::DeviceRequestAllocationResult::default();
            (admin.driver, admin.pool) = (query.driver().to_owned(), "pool-0".to_owned());
            (admin.device, admin.admin_access) = (format!("dev-{device}"), Some(true));
            devices.unwrap().results.get_or_insert_default().push(admin);
        }
        prop_assert_eq!(report(&objects, &query), before);
    }

    /// Slices of an old generation change nothing where there are newer ones.
    #[test]
    fn old_generations(mut objects in objects(), query in query()) {
        // req: 5677-CALC-8
        let before = report(&objects, &query);
        let old: Vec<_> = objects.slices.iter().cloned().map(|mut slice| {
            slice.metadata.name = slice.metadata.name.map(|name| format!("old-{name}"));
            slice.spec.pool.generation = 0;
            slice
        }).collect();
        objects.slices.extend(old);
        prop_assert_eq!(report(&objects, &query), before);
    }

    /// Taking a claim away gives back at most what it held, in both forms.
    #[test]
    fn fewer_claims(mut objects in objects(), query in query()) {
        let query = Query::new(query.driver());
        let before = report(&objects, &query);
        let Some(gone) = objects.claims.pop() else { return Ok(()) };
        let held = gone.status.iter().flat_map(|status| status.allocation.iter()).flat_map(|allocation| allocation.devices.iter());
        let held = held.flat_map(|devices| devices.results.iter().flatten()).count();
        let after = report(&objects, &query);
        for (before, after) in before.pools.iter().zip(&after.pools) {
            prop_assert!(after.counts.allocated <= before.counts.allocated);
            prop_assert!(before.counts.named - after.counts.named <= held);
            prop_assert_eq!((after.counts.total, after.counts.tainted), (before.counts.total, before.counts.tainted));
        }
    }

    /// The same input gives the same bytes.
    #[test]
    fn deterministic(objects in objects(), query in query()) {
        let text = |report: Report| {
            let lints: Vec<_> = report.lints(Profile::Kep).collect();
            serde_json::to_string(&(report.kep(), lints)).unwrap()
        };
        prop_assert_eq!(text(report(&objects, &query)), text(report(&objects, &query)));
    }
}

/// A fixed shuffle.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for index in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        items.swap(index, usize::try_from(seed >> 33).unwrap() % (index + 1));
    }
}
