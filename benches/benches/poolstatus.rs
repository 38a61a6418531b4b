//! Cost of pool status by number of pools: from scratch, and from an index after one change.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![expect(clippy::expect_used, reason = "a benchmark stops where its input is wrong")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use poolstatus::{Cluster, PoolIndex, PoolIndexEvent, Query};
use serde_json::{Value, from_value, json};

const DRIVER: &str = "gpu.example.com";
const POOLS: [usize; 4] = [10, 100, 1_000, 10_000];
const DEVICES: usize = 100;

/// Number of claims in every pool.
const CLAIMS: usize = 2;
/// Number of devices that each claim holds.
const HELD: usize = 25;

fn pool(index: usize) -> String {
    format!("node-{index:05}")
}

fn slice(index: usize) -> Arc<ResourceSlice> {
    let name = pool(index);
    let devices: Vec<Value> = (0..DEVICES).map(|device| json!({"name": format!("gpu-{device}")})).collect();
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices});
    Arc::new(from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a slice"))
}

fn claim(index: usize, number: usize) -> Arc<ResourceClaim> {
    let held = (0..HELD).map(|device| device + number * HELD);
    let results: Vec<Value> = held
        .map(|device| json!({"request": "r", "driver": DRIVER, "pool": pool(index), "device": format!("gpu-{device}")}))
        .collect();
    let name = format!("{}-{number}", pool(index));
    let status = json!({"allocation": {"devices": {"results": results}}});
    Arc::new(from_value(json!({"metadata": {"namespace": "team", "name": name}, "status": status})).expect("a claim"))
}

/// Builds the claims of all pools, in mixed order.
fn claims(pools: usize) -> Vec<Arc<ResourceClaim>> {
    let all = (0..pools * CLAIMS).map(|index| index * 7_919 % (pools * CLAIMS));
    all.map(|index| claim(index / CLAIMS, index % CLAIMS)).collect()
}

fn one_shot(criterion: &mut Criterion) {
    for pools in POOLS {
        let slices: Vec<_> = (0..pools).map(slice).collect();
        let claims = claims(pools);
        let mut group = criterion.benchmark_group("poolstatus/one_shot");
        group.throughput(Throughput::Elements(u64::try_from(pools).unwrap_or(u64::MAX)));
        let query = Query::new(DRIVER).with_limit(pools);
        let cluster =
            || Cluster::new(Profile::V1_37, slices.iter().map(|slice| &**slice), claims.iter().map(|claim| &**claim));
        let run = || cluster().report(&query, Timestamp::UNIX_EPOCH).to_kep().pools.len();
        assert_eq!(run(), pools);
        group.bench_function(BenchmarkId::from_parameter(pools), |bencher| bencher.iter(run));
        group.finish();
    }
}

fn index(criterion: &mut Criterion) {
    for pools in POOLS {
        let mut index = PoolIndex::new(Profile::V1_37);
        let slices = (0..pools).map(|pool| PoolIndexEvent::Slice(slice(pool)));
        for event in slices.chain(claims(pools).into_iter().map(PoolIndexEvent::Claim)) {
            index.apply(event).expect("a named object");
        }
        let (changed, last) = (claim(pools - 1, 0), pool(pools - 1));
        let query = Query::new(DRIVER).with_pool(&last);
        let mut group = criterion.benchmark_group("poolstatus/one_claim_changed_and_one_pool_asked");
        group.bench_function(BenchmarkId::from_parameter(pools), |bencher| {
            bencher.iter(|| {
                index.apply(PoolIndexEvent::Claim(Arc::clone(&changed))).expect("a named object");
                index.report(black_box(&query), Timestamp::UNIX_EPOCH).to_kep().pools.len()
            });
        });
        group.finish();
        let mut group = criterion.benchmark_group("poolstatus/ten_pools_of_all");
        let query = Query::new(DRIVER).with_limit(10);
        group.bench_function(BenchmarkId::from_parameter(pools), |bencher| {
            bencher.iter(|| index.report(black_box(&query), Timestamp::UNIX_EPOCH).matching_pools);
        });
        group.finish();
    }
}

criterion_group!(benches, one_shot, index);
criterion_main!(benches);
