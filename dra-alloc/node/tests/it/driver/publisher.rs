//! A publisher before a server in memory: several pools, echoes, changes of others, lists, failures.

use std::collections::BTreeMap;

use dra_attrs::{Gate, Profile};
use dra_node::driver::{
    DueReason, NextStep, NodeChoice, PoolPublishError, PoolSpec, Publisher, SliceLimits, SliceWrite, WriteFailure,
    WriteResponse,
};
use k8s_openapi::api::resource::v1::{Device, DeviceTaint, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

const DRIVER: &str = "gpu.example.com";

/// Slices as they are stored, with versions that rise.
#[derive(Default)]
struct Server {
    stored: BTreeMap<String, ResourceSlice>,
    version: u64,
    drops_taints: bool,
}

impl Server {
    /// Makes a write; `None` for a delete.
    fn make(&mut self, write: &SliceWrite) -> Option<ResourceSlice> {
        self.version += 1;
        let (SliceWrite::Create { slice, .. } | SliceWrite::Update { slice, .. }) = write else {
            let SliceWrite::Delete { name, uid, .. } = write else { panic!("{write:?}") };
            let gone = self.stored.remove(name).unwrap();
            assert_eq!(gone.metadata.uid.as_ref(), Some(uid));
            return None;
        };
        let mut slice = slice.clone();
        slice.metadata.resource_version = Some(self.version.to_string());
        slice.metadata.uid.get_or_insert_with(|| format!("uid-{}", self.version));
        if self.drops_taints {
            slice.spec.devices.iter_mut().flatten().for_each(|device| device.taints = None);
        }
        self.stored.insert(slice.metadata.name.clone().unwrap(), slice.clone());
        Some(slice)
    }
}

struct World {
    server: Server,
    publisher: Publisher,
    now: Timestamp,
}

fn devices(names: &[&str]) -> Vec<Device> {
    names.iter().map(|name| Device { name: (*name).to_owned(), ..Device::default() }).collect()
}

fn pool<'a>(name: &'a str, devices: &'a [Device]) -> PoolSpec<'a> {
    PoolSpec::new(DRIVER, name, NodeChoice::Node("node-1")).with_devices(devices)
}

impl World {
    fn new() -> Self {
        let publisher = Publisher::new(DRIVER, Some("node-1"), SliceLimits::of(Profile::V1_37));
        Self { server: Server::default(), publisher, now: Timestamp::from_second(1_795_000_000).unwrap() }
    }

    fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn list(&mut self) {
        self.publisher.listed(self.server.stored.values().cloned(), self.now);
    }

    /// Makes a pass whose writes all succeed; returns the names, a `-` before deleted ones.
    fn pass(&mut self, pools: &[PoolSpec<'_>]) -> Vec<String> {
        let pass = self.publisher.begin(pools, self.now);
        let mut names = Vec::new();
        for write in pass.writes() {
            let stored = self.server.make(write);
            let answer = stored.as_ref().map_or(WriteResponse::Deleted, WriteResponse::Stored);
            names.push(match write {
                SliceWrite::Delete { name, .. } => format!("-{name}"),
                _ => stored.as_ref().and_then(|slice| slice.metadata.name.clone()).unwrap(),
            });
            if self.publisher.answered(write, answer, self.now).next != NextStep::Continue {
                break;
            }
        }
        self.publisher.end(&pass, self.now);
        names
    }

    /// Shows the publisher all stored slices, as a watch does.
    fn echo(&mut self) {
        for slice in self.server.stored.values() {
            self.publisher.shown(slice.clone(), self.now);
        }
    }

    /// Returns the seconds until the next pass, and its reason.
    fn next(&self) -> Option<(i64, DueReason)> {
        self.publisher.next_at(self.now).map(|(at, reason)| (at.duration_since(self.now).as_secs(), reason))
    }
}

#[test]
fn nothing_is_due_before_the_first_list_and_after_own_echoes() {
    let (mut world, [gpus, nics]) = (World::new(), [devices(&["gpu-0"]), devices(&["nic-0"])]);
    assert_eq!(world.next(), None);
    world.list();
    assert_eq!(world.next(), Some((0, DueReason::Desired)));
    let pools = [pool("gpus", &gpus), pool("nics", &nics)];
    assert_eq!(world.pass(&pools).len(), 2);
    assert_eq!(world.next(), Some((60, DueReason::Confirm)), "the watch has not shown them");
    world.wait(1);
    world.echo();
    let pass = world.publisher.begin(&pools, world.now);
    assert_eq!(pass.writes().count(), 0);
    world.publisher.end(&pass, world.now);
    assert_eq!(world.next(), None, "own writes are no events of others");
    // After the deletion of everything by a kubelet, generations go on from the clock.
    let generations = world.server.stored.values().map(|slice| slice.spec.pool.generation);
    assert!(generations.into_iter().all(|generation| generation > 1_795_000_000));
}

#[test]
fn changes_of_others_are_mended_in_their_time() {
    let (mut world, gpus) = (World::new(), devices(&["gpu-0", "gpu-1"]));
    let pools = [pool("gpus", &gpus)];
    world.list();
    world.pass(&pools);
    world.echo();
    world.pass(&pools);
    // A change by somebody else.
    let mut slice = world.server.stored.values().next().unwrap().clone();
    slice.spec.devices.as_mut().unwrap().pop();
    let changed = world.server.make(&SliceWrite::Update { index: 0.into(), slice }).unwrap();
    world.publisher.shown(changed.clone(), world.now);
    world.publisher.shown(changed, world.now);
    assert_eq!(world.next(), Some((30, DueReason::ForeignEvent)));
    world.wait(30);
    assert_eq!(world.pass(&pools).len(), 1);
    world.echo();
    // A deletion that only a new list shows.
    world.server.stored.clear();
    world.list();
    assert_eq!(world.next(), Some((2, DueReason::Vanished)));
    world.wait(2);
    assert_eq!(world.pass(&pools).len(), 1);
    assert_eq!(world.server.stored.values().next().unwrap().spec.devices.as_ref().unwrap().len(), 2);
}

#[test]
fn an_event_in_the_middle_of_a_pass_is_not_forgotten() {
    let (mut world, gpus) = (World::new(), devices(&["gpu-0"]));
    let pools = [pool("gpus", &gpus)];
    world.list();
    let pass = world.publisher.begin(&pools, world.now);
    world.publisher.devices_changed(world.now);
    world.publisher.end(&pass, world.now);
    assert_eq!(world.next(), Some((0, DueReason::Desired)));
}

#[test]
fn a_slice_that_somebody_deleted_unseen_is_written_again() {
    // The pass at the end of the minute looks for it, and so does one for another reason that is later.
    for seconds in [60, 61] {
        let (mut world, gpus) = (World::new(), devices(&["gpu-0"]));
        let pools = [pool("gpus", &gpus)];
        world.list();
        world.pass(&pools);
        world.server.stored.clear();
        world.list();
        assert_eq!(world.next(), Some((60, DueReason::Confirm)), "no watch has shown it");
        world.wait(seconds);
        world.publisher.devices_changed(world.now);
        assert_eq!(world.pass(&pools).len(), 1, "after {seconds} s");
        world.echo();
        assert_eq!((world.server.stored.len(), world.pass(&pools).len(), world.next()), (1, 0, None));
    }
}

#[test]
fn a_pool_that_is_gone_is_withdrawn_first() {
    let (mut world, gpus) = (World::new(), devices(&["gpu-0"]));
    world.list();
    let former = world.pass(&[pool("former", &gpus)]);
    world.echo();
    let names = world.pass(&[pool("gpus", &gpus)]);
    assert_eq!((names.len(), &names[0]), (2, &format!("-{}", former[0])));
    assert_eq!(world.server.stored.values().next().unwrap().spec.pool.name, "gpus");
}

#[test]
fn a_pool_with_an_error_keeps_no_other_from_being_written() {
    let (mut world, [twice, nics]) = (World::new(), [devices(&["gpu-0", "gpu-0"]), devices(&["nic-0"])]);
    world.list();
    let pools = [pool("gpus", &twice), pool("nics", &nics)];
    let pass = world.publisher.begin(&pools, world.now);
    let [PoolPublishError::Plan { pool, .. } | PoolPublishError::Reconcile { pool, .. }] = &pass.errors[..] else {
        panic!()
    };
    assert_eq!((pool.as_str(), pass.writes().count()), ("gpus", 1));
    assert!(pass.errors[0].to_string().starts_with("pool gpus: "), "{}", pass.errors[0]);
    world.publisher.end(&pass, world.now);
    assert!(matches!(world.next(), Some((0, DueReason::Retry))));
}

#[test]
fn failures_are_tried_again_later_and_later() {
    let (mut world, gpus) = (World::new(), devices(&["gpu-0"]));
    world.list();
    let mut delays = Vec::new();
    for _ in 0..25 {
        let pass = world.publisher.begin(&[pool("gpus", &gpus)], world.now);
        let failed = WriteResponse::Failed(WriteFailure::Unknown);
        let write = pass.writes().next().unwrap();
        assert_eq!(world.publisher.answered(write, failed, world.now).next, NextStep::BackOff);
        world.publisher.end(&pass, world.now);
        let (at, reason) = world.publisher.next_at(world.now).unwrap();
        assert_eq!(reason, DueReason::Retry);
        delays.push(at.duration_since(world.now).as_millis());
        world.now = at;
    }
    assert_eq!(delays[..4], [5, 10, 20, 40]);
    assert!(delays.is_sorted() && delays.last() == Some(&1_000_000));
    world.pass(&[pool("gpus", &gpus)]);
    assert_eq!(world.next().map(|(_, reason)| reason), Some(DueReason::Confirm));
}

#[test]
fn a_rehearsal_tells_gates_before_anything_is_published() {
    let mut world = World::new();
    world.server.drops_taints = true;
    world.list();
    let mut gpus = devices(&["gpu-0", "gpu-1"]);
    gpus[0].taints =
        Some(vec![DeviceTaint { effect: "NoSchedule".into(), key: "broken".into(), ..DeviceTaint::default() }]);
    let pools = [pool("gpus", &gpus)];
    let mut rehearsal = world.publisher.rehearsal(&pools, world.now);
    let [write] = rehearsal.writes() else { panic!() };
    // A dry run stores nothing.
    let (write, stored) = (write.clone(), Server { drops_taints: true, ..Server::default() }.make(write).unwrap());
    let answered = rehearsal.answered(&write, WriteResponse::Stored(&stored), world.now);
    assert!(answered.dropped.iter().all(|lost| lost.gate.gate == Gate::DeviceTaints) && !answered.dropped.is_empty());
    world.publisher.learn(&rehearsal);
    assert!(world.publisher.memory().gates_off().contains(&Gate::DeviceTaints));
    assert_eq!(world.pass(&pools).len(), 1);
    let published = world.server.stored.values().next().unwrap().spec.devices.clone().unwrap();
    assert_eq!(
        published.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(),
        ["gpu-1"],
        "the broken one is withheld"
    );
}
