//! Simulated hardware of a vendor: four GPUs, each used whole, in halves or in eighths, and a network card with bandwidth to share,
//! on four NUMA nodes. A card is a file in a folder: its text is `ok` or `broken`, and without the file the card is not in the
//! machine. Edit the files while the driver runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, CounterSet, Device, DeviceAttribute, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Cards, each with its NUMA node and PCI Express root.
const CARDS: [(&str, i64, &str); 5] = [
    ("gpu-0", 0, "pci0000:15"),
    ("gpu-1", 1, "pci0000:37"),
    ("gpu-2", 2, "pci0000:97"),
    ("gpu-3", 3, "pci0000:b7"),
    ("nic-0", 1, "pci0000:37"),
];

/// Ways to divide a GPU: the name, the number of parts, and the memory of each in GiB.
const SIZES: [(&str, i64, i64); 3] = [("whole", 1, 80), ("half", 2, 40), ("eighth", 8, 10)];

/// Taint of a card that is broken.
pub(crate) const BROKEN: &str = "gpu.example.com/broken";

/// Folder with a file for each card.
#[derive(Clone, Debug)]
pub(crate) struct Machine(pub(crate) PathBuf);

impl Machine {
    /// Puts all cards into a machine that has never had any.
    pub(crate) fn build(&self) -> io::Result<()> {
        if self.0.exists() {
            return Ok(());
        }
        fs::create_dir_all(self.0.join("in-use"))?;
        CARDS.iter().try_for_each(|(card, ..)| fs::write(self.0.join(card), "ok\n"))
    }

    /// Returns true if a card does not work.
    pub(crate) fn is_broken(&self, card: &str) -> bool {
        fs::read_to_string(self.0.join(card)).is_ok_and(|text| text.trim() == "broken")
    }

    /// Returns the file of a device that is set up.
    pub(crate) fn in_use(&self, device: &str, share: Option<&str>) -> PathBuf {
        self.0.join("in-use").join(format!("{device}{}", share.map(|share| format!("+{share}")).unwrap_or_default()))
    }

    fn cards(&self, kind: &'static str) -> impl Iterator<Item = (&'static str, i64, &'static str)> {
        CARDS.into_iter().filter(move |(card, ..)| card.starts_with(kind) && self.0.join(card).exists())
    }

    /// Returns the GPUs that are there, whole and in parts, with their counters.
    pub(crate) fn gpus(&self) -> (Vec<Device>, Vec<CounterSet>) {
        let (mut devices, mut sets) = (Vec::new(), Vec::new());
        for (card, numa, root) in self.cards("gpu") {
            sets.push(CounterSet { name: card.to_owned(), counters: counters(80) });
            for (size, count, memory) in SIZES {
                devices.extend((0..count).map(|number| Device {
                    name: format!("{card}-{size}-{number}"),
                    attributes: Some(attributes(size, numa, root)),
                    capacity: Some(capacity("memory", memory, None)),
                    consumes_counters: Some(vec![DeviceCounterConsumption {
                        counter_set: card.to_owned(),
                        counters: counters(memory),
                        ..DeviceCounterConsumption::default()
                    }]),
                    taints: self.taints(card),
                    ..Device::default()
                }));
            }
        }
        (devices, sets)
    }

    /// Returns the network cards that are there. Several claims share one, each with a part of its bandwidth.
    pub(crate) fn nics(&self) -> Vec<Device> {
        let policy = CapacityRequestPolicy {
            default: Some(quantity(1)),
            valid_range: Some(CapacityRequestPolicyRange { min: quantity(1), ..CapacityRequestPolicyRange::default() }),
            valid_values: None,
        };
        let device = |(card, numa, root): (&str, i64, &str)| Device {
            name: card.to_owned(),
            attributes: Some(attributes("nic", numa, root)),
            allow_multiple_allocations: Some(true),
            capacity: Some(capacity("bandwidth", 100, Some(policy.clone()))),
            taints: self.taints(card),
            ..Device::default()
        };
        self.cards("nic").map(device).collect()
    }

    fn taints(&self, card: &str) -> Option<Vec<DeviceTaint>> {
        let taint = DeviceTaint { key: BROKEN.to_owned(), effect: "NoExecute".to_owned(), ..DeviceTaint::default() };
        self.is_broken(card).then(|| vec![taint])
    }
}

/// Returns the card of a device: `gpu-0` of `gpu-0-half-1`.
pub(crate) fn card_of(device: &str) -> &str {
    CARDS.into_iter().map(|(card, ..)| card).find(|card| device.starts_with(card)).unwrap_or_default()
}

/// Returns the memory of a part of a GPU in GiB.
pub(crate) fn memory_of(device: &str) -> i64 {
    let size = SIZES.into_iter().find(|(size, ..)| device.contains(&format!("-{size}-")));
    size.map_or(0, |(_, _, memory)| memory)
}

fn attributes(kind: &str, numa: i64, root: &str) -> BTreeMap<String, DeviceAttribute> {
    let text = |value: &str| DeviceAttribute { string: Some(value.to_owned()), ..DeviceAttribute::default() };
    let number = |value| DeviceAttribute { int: Some(value), ..DeviceAttribute::default() };
    BTreeMap::from([
        ("kind".to_owned(), text(kind)),
        ("resource.kubernetes.io/numaNode".to_owned(), number(numa)),
        ("resource.kubernetes.io/pcieRoot".to_owned(), text(root)),
    ])
}

fn quantity(gibi: i64) -> Quantity {
    Quantity(format!("{gibi}Gi"))
}

fn counters(memory: i64) -> BTreeMap<String, Counter> {
    [("memory".to_owned(), Counter { value: quantity(memory) })].into()
}

fn capacity(name: &str, value: i64, policy: Option<CapacityRequestPolicy>) -> BTreeMap<String, DeviceCapacity> {
    [(name.to_owned(), DeviceCapacity { value: quantity(value), request_policy: policy })].into()
}
