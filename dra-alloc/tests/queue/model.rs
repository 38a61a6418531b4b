//! A second queue, as simple as can be: a list of units that is read from end to end, and a log of all remedies.

use dra_alloc::queue::{Place, Remedy};

/// Time in milliseconds.
type Time = i64;

#[derive(Clone, Debug)]
pub(crate) struct Model {
    is_patient: bool,
    units: Vec<Unit>,
    log: Vec<Remedy>,
    bound: Vec<String>,
    came: usize,
}

#[derive(Clone, Debug)]
struct Unit {
    came: usize,
    group: Option<String>,
    pods: Vec<(String, i32)>,
    joined: Vec<(String, i32)>,
    since: Time,
    refusals: u32,
    failures: u32,
    stay: Stay,
}

#[derive(Clone, Debug, PartialEq)]
enum Stay {
    Ready,
    /// A pause up to a time, which may be cut short or not.
    Pause(Time, bool),
    /// Waits for remedies, from a time on for nothing.
    Waits(Vec<Remedy>, Time),
    /// Is tried since an entry of the log; the pods of the attempt, and if members have changed or the unit was activated.
    Tried(usize, bool, bool),
}

impl Model {
    pub(crate) fn new(is_patient: bool) -> Self {
        Self { is_patient, units: Vec::new(), log: Vec::new(), bound: Vec::new(), came: 0 }
    }

    fn find(&mut self, pod: &str) -> Option<&mut Unit> {
        self.units.iter_mut().find(|unit| unit.pods.iter().chain(&unit.joined).any(|(name, _)| name == pod))
    }

    pub(crate) fn add(&mut self, pod: &str, priority: i32, group: Option<&str>, now: Time) {
        if self.bound.iter().any(|bound| bound == pod) || self.find(pod).is_some() {
            return;
        }
        let member = (pod.to_owned(), priority);
        let is_patient = self.is_patient;
        if let Some(unit) = self.units.iter_mut().find(|unit| group.is_some() && unit.group.as_deref() == group) {
            match unit.stay {
                Stay::Tried(..) => unit.joined.push(member),
                _ => unit.pods.push(member),
            }
            return unit.members_changed(is_patient, now);
        }
        self.units.push(Unit {
            came: self.came,
            group: group.map(str::to_owned),
            pods: vec![member],
            joined: Vec::new(),
            since: now,
            refusals: 0,
            failures: 0,
            stay: Stay::Ready,
        });
        self.came += 1;
    }

    pub(crate) fn delete(&mut self, pod: &str, now: Time) {
        self.bound.retain(|bound| bound != pod);
        let is_patient = self.is_patient;
        if let Some(unit) = self.find(pod) {
            unit.pods.retain(|(name, _)| name != pod);
            unit.joined.retain(|(name, _)| name != pod);
            if !unit.pods.is_empty() {
                unit.members_changed(is_patient, now);
            } else if let Stay::Tried(_, members, _) = &mut unit.stay {
                *members = true;
            }
        }
        self.sweep();
    }

    pub(crate) fn pop(&mut self, now: Time) -> Vec<String> {
        let is_patient = self.is_patient;
        for unit in &mut self.units {
            match unit.stay {
                Stay::Pause(until, _) if until <= now => unit.stay = Stay::Ready,
                Stay::Waits(_, flush) if flush <= now => unit.let_out(is_patient, now),
                _ => {}
            }
        }
        let ready = self.units.iter().filter(|unit| unit.stay == Stay::Ready).min_by_key(|unit| unit.key());
        let early = self.units.iter().filter_map(|unit| match unit.stay {
            Stay::Pause(until, true) if !is_patient => Some((until, unit.key())),
            _ => None,
        });
        let Some(came) = ready.map(|unit| unit.came).or_else(|| early.min().map(|(_, key)| key.2)) else {
            return Vec::new();
        };
        let log = self.log.len();
        let unit = self.units.iter_mut().find(|unit| unit.came == came).unwrap();
        unit.stay = Stay::Tried(log, false, false);
        unit.pods.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Ends an attempt of a unit, which is named by the number that [`Model::number`] returned.
    pub(crate) fn refuse(&mut self, came: usize, waits_for: &[Remedy], now: Time) {
        let (is_patient, log) = (self.is_patient, self.log.clone());
        let Some(unit) = self.units.iter_mut().find(|unit| unit.came == came) else { return };
        let Stay::Tried(begin, members, is_activated) = unit.stay else { return };
        unit.come_back(now);
        (unit.refusals, unit.failures) = (unit.refusals + 1, 0);
        let has_come = log[begin..].iter().any(|brought| helps(brought, waits_for));
        let is_helped = has_come || is_activated || members && waits_for.contains(&Remedy::Members);
        let pause = Stay::Pause(unit.pause_ends(is_patient), true);
        unit.stay = if is_helped { pause } else { Stay::Waits(waits_for.to_vec(), now + 300_000) };
        self.sweep();
    }

    pub(crate) fn fail(&mut self, came: usize, now: Time) {
        let is_patient = self.is_patient;
        let Some(unit) = self.units.iter_mut().find(|unit| unit.came == came) else { return };
        unit.come_back(now);
        unit.failures += 1;
        unit.stay = Stay::Pause(unit.pause_ends(is_patient), false);
        self.sweep();
    }

    pub(crate) fn done(&mut self, came: usize, pods: &[String]) {
        let Some(unit) = self.units.iter_mut().find(|unit| unit.came == came) else { return };
        self.bound.extend(unit.pods.iter().map(|(name, _)| name.clone()).filter(|name| pods.contains(name)));
        unit.pods.retain(|(name, _)| !pods.contains(name));
        unit.come_back(unit.since);
        (unit.refusals, unit.failures, unit.stay) = (0, 0, Stay::Ready);
        self.sweep();
    }

    pub(crate) fn wake(&mut self, brought: &Remedy, now: Time) -> usize {
        self.log.push(brought.clone());
        let is_patient = self.is_patient;
        let is_helped = |unit: &&mut Unit| matches!(&unit.stay, Stay::Waits(waits_for, _) if helps(brought, waits_for));
        let helped: Vec<&mut Unit> = self.units.iter_mut().filter(is_helped).collect();
        let number = helped.len();
        for unit in helped {
            unit.let_out(is_patient, now);
        }
        number
    }

    pub(crate) fn activate(&mut self, pod: &str) {
        let Some(unit) = self.find(pod) else { return };
        match &mut unit.stay {
            Stay::Tried(_, _, is_activated) => *is_activated = true,
            Stay::Ready | Stay::Pause(_, false) => {}
            Stay::Pause(_, true) | Stay::Waits(..) => unit.stay = Stay::Ready,
        }
    }

    pub(crate) fn place(&self, pod: &str) -> Option<Place> {
        let is_in = |unit: &&Unit| unit.pods.iter().chain(&unit.joined).any(|(name, _)| name == pod);
        self.units.iter().find(is_in).map(|unit| match unit.stay {
            Stay::Ready => Place::Active,
            Stay::Pause(..) => Place::BackingOff,
            Stay::Waits(..) => Place::Unschedulable,
            Stay::Tried(..) => Place::InFlight,
        })
    }

    pub(crate) fn number(&self, pod: &str) -> usize {
        self.units.iter().find(|unit| unit.pods.iter().any(|(name, _)| name == pod)).unwrap().came
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        let times = self.units.iter().filter_map(|unit| match unit.stay {
            Stay::Pause(time, _) | Stay::Waits(_, time) => Some(time),
            _ => None,
        });
        times.min()
    }

    fn sweep(&mut self) {
        self.units.retain(|unit| !unit.pods.is_empty() || matches!(unit.stay, Stay::Tried(..)));
    }
}

impl Unit {
    fn key(&self) -> (i32, Time, usize) {
        (-self.pods.iter().map(|(_, priority)| *priority).max().unwrap_or_default(), self.since, self.came)
    }

    fn come_back(&mut self, now: Time) {
        self.pods.append(&mut self.joined);
        self.since = now;
    }

    fn pause_ends(&self, is_patient: bool) -> Time {
        let count = if self.failures > 0 { self.failures } else { self.refusals };
        if count == 0 {
            return self.since;
        }
        let longest = (100_000_000 * Time::try_from(self.pods.len().max(1)).unwrap()).isqrt();
        let end = self.since + (1_000 << (count - 1).min(30)).min(longest);
        if is_patient { end } else { end.div_euclid(1_000) * 1_000 + 1_000 }
    }

    fn let_out(&mut self, is_patient: bool, now: Time) {
        let (end, was_tried) = (self.pause_ends(is_patient), self.failures + self.refusals > 0);
        self.stay = if was_tried && end > now { Stay::Pause(end, true) } else { Stay::Ready };
    }

    fn members_changed(&mut self, is_patient: bool, now: Time) {
        match &mut self.stay {
            Stay::Waits(waits_for, _) if waits_for.contains(&Remedy::Members) => self.let_out(is_patient, now),
            Stay::Tried(_, members, _) => *members = true,
            _ => {}
        }
    }
}

fn helps(brought: &Remedy, waits_for: &[Remedy]) -> bool {
    let is_devices = |remedy: &Remedy| matches!(remedy, Remedy::AnyDevices | Remedy::Devices { .. });
    waits_for.iter().any(|remedy| {
        let is_any = [brought, remedy].contains(&&Remedy::AnyDevices);
        remedy == brought || is_any && is_devices(remedy) && is_devices(brought)
    })
}
