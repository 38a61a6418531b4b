//! Properties that hold for every cluster.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::{AvailabilityReport, Cluster, Query, RequestOutcome};
use proptest::prelude::*;

use crate::cluster::{kep_counts, now, shipped_counts};
use crate::random::{Objects, objects, query};

fn report(objects: &Objects, query: &Query) -> AvailabilityReport {
    Cluster::new(Profile::V1_37, &objects.slices, &objects.claims).with_taint_rules(&objects.rules).report(query, now())
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

    /// The KEP's counts add up, and no count exceeds the total unless upstream's does.
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

    /// At most the matching pools and at most `limit` pools are listed, and both forms list the same pools.
    #[test]
    fn pools(objects in objects(), query in query()) {
        let report = report(&objects, &query);
        let kep = report.to_kep();
        let (RequestOutcome::Ready(status) | RequestOutcome::Incomplete { preview: status, .. }) = report.to_v1alpha3() else {
            return Err(TestCaseError::fail("failed"));
        };
        let shipped = status.pools.unwrap_or_default();
        prop_assert!(kep.pools.len() <= report.matching_pools && kep.pools.len() <= query.limit());
        prop_assert_eq!(kep.truncated, kep.pools.len() < report.matching_pools);
        prop_assert_eq!(kep.total_matching_pools, status.pool_count);
        prop_assert!(shipped.iter().map(|pool| &pool.pool_name).eq(kep.pools.iter().map(|pool| &pool.pool_name)));
        prop_assert!(kep.pools.is_sorted_by(|left, right| left.pool_name < right.pool_name));
        prop_assert!(kep.validation_errors.len() <= 10);
        prop_assert!(kep.validation_errors.iter().all(|error| error.chars().count() <= 256));
        let errors = shipped.iter().filter_map(|pool| pool.validation_error.as_ref());
        prop_assert!(errors.into_iter().all(|error| error.len() <= 256));
    }

    /// An additional result with admin access changes nothing.
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

    /// Slices of an older generation change nothing.
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

    /// Removing a claim frees at most the devices that it held.
    #[test]
    fn fewer_claims(mut objects in objects(), query in query()) {
        let query = Query::new(query.driver());
        let before = report(&objects, &query);
        let Some(gone) = objects.claims.pop() else { return Ok(()) };
        let held = gone.status.iter().flat_map(|status| status.allocation.iter()).flat_map(|allocation| allocation.devices.iter());
        let held = held.flat_map(|devices| devices.results.iter().flatten()).count();
        let after = report(&objects, &query);
        for (before, after) in before.pools.iter().zip(&after.pools) {
            prop_assert!(after.counts(Profile::Kep).allocated <= before.counts(Profile::Kep).allocated);
            let (before, after) = (before.counts(Profile::V1_37), after.counts(Profile::V1_37));
            prop_assert!(before.allocated - after.allocated <= i32::try_from(held).unwrap());
            prop_assert_eq!((after.total, after.unavailable), (before.total, before.unavailable));
        }
    }

    /// Equal input gives equal output, byte for byte.
    #[test]
    fn deterministic(objects in objects(), query in query()) {
        let text = |report: AvailabilityReport| {
            let warnings: Vec<String> = report.warnings(Profile::Kep).map(|(pool, warning)| format!("{pool}: {warning}")).collect();
            serde_json::to_string(&(report.to_kep(), warnings)).unwrap()
        };
        prop_assert_eq!(text(report(&objects, &query)), text(report(&objects, &query)));
    }
}

/// Shuffles items, determined by the seed.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for index in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        items.swap(index, usize::try_from(seed >> 33).unwrap() % (index + 1));
    }
}
