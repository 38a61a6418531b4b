//! Plays any history of a publisher: answers that are lost, late or refusals, a watch that is behind, others that change slices, and
//! restarts. Nothing panics, and once answers come again the server has the devices of the driver and nothing is due.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dra_alloc::Profile;
use dra_alloc::driver::{
    NextStep, NodeChoice, PoolSpec, Publisher, ReconcileOptions, SliceLimits, SliceWrite, WriteFailure, WriteResponse,
};
use k8s_openapi::api::resource::v1::{Device, DeviceTaint, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;

const DRIVER: &str = "d.example.com";
const POOLS: [&str; 2] = ["p", "q"];

/// Passes after which a quiet server must have what is wanted.
const MOST_PASSES: usize = 40;

/// Event of a watch: a slice that is stored, or one that is gone.
enum Event {
    Shown(ResourceSlice),
    Vanished(ResourceSlice),
}

/// Server with a watch that is behind, and writes that have not arrived.
#[derive(Default)]
struct Server {
    stored: BTreeMap<String, ResourceSlice>,
    version: u64,
    drops_taints: bool,
    events: VecDeque<Event>,
    late: Vec<SliceWrite>,
}

impl Server {
    /// Makes a write as an API server does; a delete has no slice.
    fn make(&mut self, write: &SliceWrite) -> Result<Option<ResourceSlice>, WriteFailure> {
        match write {
            SliceWrite::Delete { name, uid, resource_version } => {
                let stored = self.stored.get(name).ok_or(WriteFailure::NotFound)?;
                let metadata = &stored.metadata;
                if (metadata.uid.as_ref(), metadata.resource_version.as_ref()) != (Some(uid), Some(resource_version)) {
                    return Err(WriteFailure::Conflict);
                }
                self.remove(&name.clone());
                Ok(None)
            }
            SliceWrite::Create { slice, .. } => {
                let mut slice = slice.clone();
                let prefix = slice.metadata.generate_name.clone().unwrap_or_default();
                let name = slice.metadata.name.get_or_insert_with(|| format!("{prefix}{}", self.version)).clone();
                if self.stored.contains_key(&name) {
                    return Err(WriteFailure::AlreadyExists);
                }
                slice.metadata.uid = Some(format!("uid-{}", self.version));
                Ok(Some(self.store(slice)))
            }
            SliceWrite::Update { slice, .. } => {
                let stored = slice.metadata.name.as_ref().and_then(|name| self.stored.get(name));
                let stored = stored.ok_or(WriteFailure::NotFound)?;
                if stored.metadata.resource_version != slice.metadata.resource_version {
                    return Err(WriteFailure::Conflict);
                }
                Ok(Some(self.store(slice.clone())))
            }
            _ => Err(WriteFailure::Invalid),
        }
    }

    fn store(&mut self, mut slice: ResourceSlice) -> ResourceSlice {
        self.version += 1;
        slice.metadata.resource_version = Some(self.version.to_string());
        if self.drops_taints {
            slice.spec.devices.iter_mut().flatten().for_each(|device| device.taints = None);
        }
        self.stored.insert(slice.metadata.name.clone().unwrap_or_default(), slice.clone());
        self.events.push_back(Event::Shown(slice.clone()));
        slice
    }

    fn remove(&mut self, name: &str) {
        self.version += 1;
        self.events.extend(self.stored.remove(name).map(Event::Vanished));
    }

    fn arrive(&mut self) {
        for write in std::mem::take(&mut self.late) {
            let _ = self.make(&write);
        }
    }

    /// Somebody else changes, deletes or makes a slice of the driver.
    fn meddle(&mut self, with: u8) {
        let number = usize::from(with / 4) % self.stored.len().max(1);
        let Some(mut slice) = self.stored.values().nth(number).cloned() else { return };
        let name = slice.metadata.name.clone().unwrap_or_default();
        match with % 4 {
            0 => return self.remove(&name),
            1 => drop(slice.spec.devices.as_mut().and_then(Vec::pop)),
            2 => slice.spec.pool.generation += 1,
            _ => {
                slice.metadata.name = Some(format!("foreign-{}", self.version));
                slice.metadata.uid = Some(format!("uid-{}", self.version));
            }
        }
        self.store(slice);
    }
}

struct World {
    server: Server,
    publisher: Publisher,
    now: Timestamp,
    /// Devices of each pool, a bit each; a pool without any is none of the driver's.
    wanted: [u8; 2],
    options: ReconcileOptions,
}

fn publisher(options: ReconcileOptions) -> Publisher {
    let mut limits = SliceLimits::of(Profile::V1_37);
    (limits.max_devices, limits.max_advanced_devices) = (2, 2);
    Publisher::new(DRIVER, Some("n"), limits).with_options(options)
}

/// Devices of a mask; the odd ones have a taint.
fn devices(mask: u8) -> Vec<Device> {
    let taint = || DeviceTaint { key: "k".to_owned(), effect: "NoSchedule".to_owned(), ..DeviceTaint::default() };
    let device = |bit: u8| Device {
        name: format!("g{bit}"),
        taints: (bit % 2 == 1).then(|| vec![taint()]),
        ..Device::default()
    };
    (0..8).filter(|bit| mask & (1 << bit) != 0).map(device).collect()
}

impl World {
    fn list(&mut self) {
        self.server.events.clear();
        self.publisher.listed(self.server.stored.values().cloned(), self.now);
    }

    /// Makes a pass; an answer says what becomes of each write.
    fn pass(&mut self, mut answer: impl FnMut() -> u8) -> usize {
        let devices = self.wanted.map(devices);
        let named = POOLS.iter().zip(&devices).filter(|(_, devices)| !devices.is_empty());
        let pools: Vec<PoolSpec<'_>> = named
            .map(|(pool, devices)| PoolSpec::new(DRIVER, pool, NodeChoice::Node("n")).with_devices(devices))
            .collect();
        let pass = self.publisher.begin(&pools, self.now);
        let mut made = 0;
        for write in pass.writes() {
            made += 1;
            let answer = match answer() % 8 {
                0..=3 => self.server.make(write),
                4 => self.server.make(write).and(Err(WriteFailure::Unknown)),
                5 => Err(WriteFailure::Unknown),
                6 => {
                    self.server.late.push(write.clone());
                    Err(WriteFailure::Unknown)
                }
                _ => Err(WriteFailure::Forbidden),
            };
            let told = match &answer {
                Ok(Some(slice)) => WriteResponse::Stored(slice),
                Ok(None) => WriteResponse::Deleted,
                Err(failure) => WriteResponse::Failed(*failure),
            };
            if self.publisher.answered(write, told, self.now).next != NextStep::Continue {
                break;
            }
        }
        self.publisher.end(&pass, self.now);
        made
    }

    fn show(&mut self, most: usize) {
        for _ in 0..most {
            match self.server.events.pop_front() {
                Some(Event::Shown(slice)) => self.publisher.shown(slice, self.now),
                Some(Event::Vanished(slice)) => self.publisher.vanished(&slice, self.now),
                None => return,
            }
        }
    }

    fn step(&mut self, step: u8, bytes: &mut impl Iterator<Item = u8>) {
        let mut next = || bytes.next().unwrap_or_default();
        match step % 8 {
            0 => self.now += SignedDuration::from_secs(i64::from(next())),
            1 => {
                self.wanted[usize::from(step / 8) % 2] = next();
                self.publisher.devices_changed(self.now);
            }
            2 => self.show(usize::from(next()) + 1),
            3 if (step / 8).is_multiple_of(4) => self.list(),
            3 if step / 8 % 4 == 1 => {
                self.publisher = publisher(self.options);
                self.list();
            }
            3 => self.server.arrive(),
            4 => self.server.meddle(next()),
            _ => {
                if let Some((at, _)) = self.publisher.next_at(self.now) {
                    self.now = at;
                    self.pass(next);
                }
            }
        }
    }

    /// Answers come, the watch is there, and nobody else writes: the server has what is wanted after some passes.
    fn settle(&mut self) {
        self.server.arrive();
        self.show(usize::MAX);
        for _ in 0..MOST_PASSES {
            let Some((at, _)) = self.publisher.next_at(self.now) else { return self.assert_stored() };
            self.now = at;
            self.pass(|| 0);
            self.show(usize::MAX);
        }
        panic!("no end: {:?}", self.publisher.next_at(self.now));
    }

    fn assert_stored(&self) {
        for (pool, wanted) in POOLS.into_iter().zip(self.wanted) {
            let slices: Vec<&ResourceSlice> =
                self.server.stored.values().filter(|slice| slice.spec.pool.name == pool).collect();
            let stored: Vec<&Device> = slices.iter().flat_map(|slice| slice.spec.devices.iter().flatten()).collect();
            let names: BTreeSet<&str> = stored.iter().map(|device| device.name.as_str()).collect();
            assert_eq!(stored.len(), names.len(), "{pool}: a device twice");
            let published = |device: &Device| !self.server.drops_taints || device.taints.is_none();
            let wanted = devices(wanted);
            let wanted: BTreeSet<&str> =
                wanted.iter().filter(|device| published(device)).map(|device| device.name.as_str()).collect();
            assert_eq!(names, wanted, "{pool}");
            let generations: BTreeSet<i64> = slices.iter().map(|slice| slice.spec.pool.generation).collect();
            assert!(generations.len() <= 1, "{pool}: {generations:?}");
            let count = i64::try_from(slices.len()).expect("few");
            assert!(slices.iter().all(|slice| slice.spec.pool.resource_slice_count == count), "{pool}: {count}");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.iter().copied().take(400);
    let choices = bytes.next().unwrap_or_default();
    let options = ReconcileOptions { deletes_last: choices & 1 != 0, ..ReconcileOptions::default() };
    let server = Server { drops_taints: choices & 2 != 0, ..Server::default() };
    let now = Timestamp::from_second(1_795_000_000).expect("in range");
    let mut world = World { server, publisher: publisher(options), now, wanted: [1, 0], options };
    world.list();
    while let Some(step) = bytes.next() {
        world.step(step, &mut bytes);
    }
    world.settle();
});
