//! The seeds of the fuzz targets, replayed through the same parsers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dra_alloc::kubelet::gate::Gate;
use dra_alloc::kubelet::{ClaimCache, Settings};
use dra_alloc::selector::{Selector, SelectorInput};
use dra_attrs::name::QualifiedName;
use dra_attrs::numa::CpuSet;
use dra_attrs::pci::PciAddress;
use dra_attrs::profile::Profile;
use dra_attrs::quantity::Quantity;
use dra_attrs::semver::Version;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{Device, ResourceClaim};
use nnn::amount::Amount;
use nnn::options::Options;
use nnn::pod::PodView;
use nnn::scheduler::{Input, Scheduler};
use serde_json::json;

/// Parses a text; what was read must print a text that reads back as the same.
type Check = fn(&str);

const TARGETS: [(&str, Check); 10] = [
    ("attrs_names", |text| {
        if let Ok(name) = QualifiedName::parse(text) {
            assert_eq!(name.to_string(), text);
        }
    }),
    ("attrs_quantity", |text| {
        if let Ok(quantity) = text.parse::<Quantity>() {
            assert_eq!(quantity.to_string().parse(), Ok(quantity));
        }
    }),
    ("attrs_pci", |text| {
        if let Ok(address) = PciAddress::parse_extended(text) {
            assert_eq!(PciAddress::parse_extended(&address.to_string()), Ok(address));
        }
    }),
    ("attrs_cpu_set", |text| {
        if let Ok(set) = text.parse::<CpuSet>() {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
    }),
    ("alloc_selector", |text| {
        let device = Device::default();
        let input = SelectorInput { driver: "d.example", device: &device };
        if let Ok(selector) = Selector::compile(text) {
            assert_eq!(selector.matches(input), selector.matches(input));
        }
    }),
    ("alloc_checkpoint", |text| {
        let file = json!({"Data": text, "Checksum": crc32fast::hash(text.as_bytes())}).to_string();
        let caches = [text, &file].map(|file| ClaimCache::from_checkpoint(file.as_bytes()));
        for cache in caches.into_iter().flatten() {
            let written = cache.to_checkpoint(Profile::V1_37);
            let again = ClaimCache::from_checkpoint(written.as_bytes()).unwrap();
            assert_eq!(again.claims(), cache.claims());
        }
    }),
    ("alloc_kubelet", |text| {
        type Steps = Vec<(u8, BTreeMap<String, Result<(), String>>)>;
        let (pod, claims, _): (Pod, Vec<ResourceClaim>, Steps) = serde_json::from_str(text).unwrap();
        let settings = Settings::new(Profile::V1_37).with(Gate::OptionalNodeOperations);
        assert!(ClaimCache::default().plan_prepare(&pod, &claims, |_| true, settings).is_ok());
    }),
    ("nnn_amount", |text| {
        if let Ok(amount) = Amount::parse(text) {
            assert_eq!(Amount::parse(&amount.to_string()), Ok(amount));
        }
    }),
    ("nnn_run", |text| {
        let mut scheduler = Scheduler::new(Options::default());
        for step in text.as_bytes().get(1..).unwrap_or_default().chunks_exact(3) {
            let pod = PodView::pending("d", &format!("p{}", step[1] % 4)).with_uid(&format!("u{}", step[1] % 8));
            let input = match step[0] % 3 {
                0 => Input::PodDeleted { uid: pod.key.uid },
                1 => Input::PodObserved(pod.nominated_to(&format!("n{}", step[2] % 4))),
                _ => Input::Bound { pod: pod.key },
            };
            let _ = scheduler.handle(input);
            assert!(scheduler.nominator().len() <= scheduler.pods().count());
        }
    }),
    ("attrs_semver", |text| {
        if let Ok(version) = text.parse::<Version>() {
            assert_eq!(version.to_string(), text);
        }
    }),
];

#[test]
fn seeds_of_the_parsers() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for (target, check) in TARGETS {
        let folder = seeds.join(target);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let texts = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let texts: Vec<String> = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        assert!(!texts.is_empty(), "{target} has no seeds");
        texts.iter().flat_map(|text| text.lines().chain([text.as_str()])).for_each(check);
    }
}
