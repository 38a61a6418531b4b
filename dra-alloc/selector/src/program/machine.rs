//! Machine: runs a program on a device.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::steps::{self, Elements};
use super::{Access, Call, Op, Program, Target, messages};
use crate::SelectorInput;
use crate::cost::actual::actual;
use crate::fault::Fault;
use crate::functions::{maps, regex};
use crate::meter::Meter;
use crate::value::{Answer, Key, List, Map, Table, Value};

/// Work of a call besides that for its arguments.
const CALL: usize = 8;

/// Work of a call's error, which has a text.
const FAILURE: usize = 24;

/// Arguments of a call.
type Arguments<'v> = SmallVec<[Value<'v>; 3]>;

/// State of a chain of fields and indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    Plain,
    Optional,
    /// Something optional was not there: nothing is read any more.
    Absent,
}

/// Content of a variable.
#[derive(Debug)]
enum Slot<'v> {
    Answer(Answer<'v>),
    /// Not computed yet; where it is computed.
    Deferred(Target),
}

struct Machine<'m, 'v, 's> {
    program: &'v Program,
    input: &'v SelectorInput<'v>,
    meter: &'m mut Meter<'s>,
    stack: SmallVec<[Answer<'v>; 8]>,
    slots: Vec<Slot<'v>>,
    loops: Vec<Elements<'v>>,
    chains: SmallVec<[Chain; 8]>,
    /// Operations to go on with after values of bound names.
    returns: Vec<usize>,
    next: usize,
}

impl Program {
    /// Evaluates the program on a device.
    pub(crate) fn run<'v>(&'v self, input: &'v SelectorInput<'v>, meter: &mut Meter<'_>) -> Answer<'v> {
        let slots = (0..self.variables).map(|_| Slot::Answer(Ok(Value::Null))).collect();
        let (stack, loops, chains, returns) = (SmallVec::new(), Vec::new(), SmallVec::new(), Vec::new());
        let mut machine = Machine { program: self, input, meter, stack, slots, loops, chains, returns, next: 0 };
        while let Some(op) = self.ops.get(machine.next) {
            machine.next += 1;
            machine.execute(*op)?;
        }
        debug_assert_eq!(machine.stack.len(), 1, "a program leaves its answer alone on the stack");
        debug_assert!(machine.returns.is_empty(), "each value of a bound name returns");
        machine.pop()
    }
}

impl<'v> Machine<'_, 'v, '_> {
    fn pop(&mut self) -> Answer<'v> {
        self.stack.pop().unwrap_or_else(|| Err(Fault::internal("nothing is on the stack")))
    }

    /// Takes the last values, in order; the error is the first of them.
    fn pop_values(&mut self, count: usize) -> Result<Vec<Value<'v>>, Box<Fault>> {
        debug_assert!(count <= self.stack.len(), "the values were put on the stack");
        let from = self.stack.len().saturating_sub(count);
        self.stack.drain(from..).collect()
    }

    /// Puts an answer on the stack; a fatal one ends the evaluation.
    fn push(&mut self, answer: Answer<'v>) -> Result<(), Box<Fault>> {
        match answer {
            Err(fault) if fault.is_fatal() => Err(fault),
            answer => {
                self.stack.push(answer);
                Ok(())
            }
        }
    }

    /// Puts an answer in the place of the last one.
    fn replace(&mut self, answer: Answer<'v>) -> Result<(), Box<Fault>> {
        debug_assert!(!self.stack.is_empty(), "there is an answer to replace");
        self.stack.pop();
        self.push(answer)
    }

    fn constant(&self, index: usize) -> Answer<'v> {
        Ok(match self.key(index)? {
            Value::String(text) => Value::borrowed(text),
            other => other.clone(),
        })
    }

    fn key(&self, index: usize) -> Result<&'v Value<'v>, Box<Fault>> {
        self.program.constants.get(index).ok_or_else(|| Fault::internal("no such constant"))
    }

    fn has_failed(&self) -> bool {
        matches!(self.stack.last(), Some(Err(_)))
    }

    fn execute(&mut self, op: Op) -> Result<(), Box<Fault>> {
        let answer = match op {
            Op::Constant(index) => self.constant(index),
            Op::Device => Ok(Value::Map(Map::Device(self.input))),
            Op::Local(slot) => self.local(slot),
            Op::Take(slot) => self.take(slot),
            Op::Close => self.close(),
            Op::Combine(deciding) => self.combine(deciding),
            Op::NotStrictlyFalse => Ok(Value::Bool(!matches!(self.pop(), Ok(Value::Bool(false))))),
            Op::List { count, optional } => self.list(count, optional),
            Op::Map { count, optional } => self.map(count, optional),
            Op::Message(index) => self.message(index),
            Op::InSet(set) => self.in_set(set),
            Op::Append => self.append(),
            Op::Insert { count } => self.insert(count),
            _ => return self.proceed(op),
        };
        self.push(answer)
    }

    /// Executes an operation that is more than a new value on the stack.
    fn proceed(&mut self, op: Op) -> Result<(), Box<Fault>> {
        match op {
            Op::Charge(cost) => return self.meter.charge(cost.into()),
            Op::Refund => return self.meter.refund(),
            Op::Force(slot) => return self.force(slot),
            Op::Step { key, access } => return self.step(self.key(key)?, access),
            Op::Index(access) => return self.index(access),
            Op::Test(key) => return self.test(key),
            Op::Call(call) => return self.call(call),
            Op::Branch { otherwise, end } => return self.branch(otherwise, end),
            Op::Bail { drop, end } => return self.bail(drop, end),
            Op::Begin { second, end } => return self.begin(second, end),
            Op::Next { first, second, done } => return self.next_round(first, second, done),
            Op::Open => self.open(),
            Op::Fallback { unwraps, end } => self.fallback(unwraps, end),
            Op::Jump(target) => self.jump(target),
            Op::SkipIndex(end) if self.has_failed() || self.chains.last() == Some(&Chain::Absent) => self.jump(end),
            Op::Decide(deciding, target) if self.is_last(deciding) => self.jump(target),
            Op::While(done) => {
                if matches!(self.pop(), Ok(Value::Bool(false))) {
                    self.jump(done);
                }
            }
            Op::Store(slot) => self.store(slot),
            Op::Defer(slot, target) => self.set(slot, Slot::Deferred(target)),
            Op::Return(slot) => {
                debug_assert!(!self.returns.is_empty(), "a value is computed for an operation that waits");
                self.store(slot);
                self.next = self.returns.pop().unwrap_or(usize::MAX);
            }
            Op::End => {
                debug_assert!(!self.loops.is_empty(), "a loop that ends has begun");
                self.loops.pop();
            }
            // A skip or a decision whose condition does not hold, and all that `execute` has done.
            _ => {}
        }
        Ok(())
    }

    fn place(&self, target: Target) -> usize {
        let place = self.program.places.get(target).copied();
        debug_assert!(place.is_some_and(|place| place <= self.program.ops.len()), "each target has a place");
        place.unwrap_or(usize::MAX)
    }

    fn jump(&mut self, target: Target) {
        self.next = self.place(target);
    }

    fn is_last(&self, value: bool) -> bool {
        matches!(self.stack.last(), Some(Ok(Value::Bool(last))) if *last == value)
    }

    fn store(&mut self, slot: usize) {
        let answer = self.pop();
        self.set(slot, Slot::Answer(answer));
    }

    fn set(&mut self, slot: usize, content: Slot<'v>) {
        debug_assert!(slot < self.slots.len(), "each variable has a slot");
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = content;
        }
    }

    fn local(&self, slot: usize) -> Answer<'v> {
        debug_assert!(
            matches!(self.slots.get(slot), Some(Slot::Answer(_))),
            "a variable is read after it was computed"
        );
        match self.slots.get(slot) {
            Some(Slot::Answer(answer)) => answer.clone(),
            _ => Ok(Value::Null),
        }
    }

    fn take(&mut self, slot: usize) -> Answer<'v> {
        debug_assert!(
            matches!(self.slots.get(slot), Some(Slot::Answer(_))),
            "a variable is read after it was computed"
        );
        match self.slots.get_mut(slot).map(|slot| std::mem::replace(slot, Slot::Answer(Ok(Value::Null)))) {
            Some(Slot::Answer(answer)) => answer,
            _ => Ok(Value::Null),
        }
    }

    /// Reads a bound name. The first time its value is computed, after which the operation runs once more.
    fn force(&mut self, slot: usize) -> Result<(), Box<Fault>> {
        match self.slots.get(slot) {
            Some(Slot::Deferred(target)) => {
                let target = *target;
                self.returns.push(self.next - 1);
                self.jump(target);
                Ok(())
            }
            _ => self.push(self.local(slot)),
        }
    }

    fn open(&mut self) {
        let chain = match self.stack.last_mut() {
            Some(Ok(value @ Value::Optional(_))) => match std::mem::replace(value, Value::Null) {
                Value::Optional(Some(held)) => {
                    *value = held.value.clone();
                    Chain::Optional
                }
                _ => Chain::Absent,
            },
            _ => Chain::Plain,
        };
        self.chains.push(chain);
    }

    fn close(&mut self) -> Answer<'v> {
        debug_assert!(!self.chains.is_empty(), "a chain that ends has begun");
        let chain = self.chains.pop().unwrap_or(Chain::Plain);
        match (chain, self.pop()) {
            (Chain::Optional, Ok(value)) => value.held(),
            (Chain::Absent, Ok(_)) => Ok(Value::NONE),
            (_, answer) => answer,
        }
    }

    /// Makes a step of a chain from the last value.
    fn step(&mut self, key: &Value<'v>, access: Access) -> Result<(), Box<Fault>> {
        let chain = self.chains.last().copied().unwrap_or(Chain::Plain);
        let is_plain = chain == Chain::Plain && access == Access::Required;
        let Some(Ok(value)) = self.stack.last_mut().filter(|_| chain != Chain::Absent) else { return Ok(()) };
        self.meter.charge(is_plain.into())?;
        self.meter.work(steps::work(value, key))?;
        let (chain, answer) = match steps::read(value, key) {
            Ok(None) if is_plain => (chain, Err(steps::missing(value, key))),
            Ok(None) => (Chain::Absent, Ok(Value::Null)),
            Ok(Some(found)) => (Chain::Optional, Ok(found)),
            Err(fault) => (Chain::Optional, Err(fault)),
        };
        if !is_plain {
            self.meter.charge(u64::from(answer.is_ok() && chain == Chain::Optional))?;
            if let Some(last) = self.chains.last_mut() {
                *last = chain;
            }
        }
        match answer {
            Ok(found) => *value = found,
            Err(fault) => return self.replace(Err(fault)),
        }
        Ok(())
    }

    fn index(&mut self, access: Access) -> Result<(), Box<Fault>> {
        let key = self.pop();
        let is_optional = access == Access::Optional || self.chains.last() == Some(&Chain::Optional);
        let answer = match key {
            Ok(key) if key.is_index() => return self.step(&key, access),
            Ok(key) => Err(steps::no_key(&key)),
            Err(fault) => Err(fault),
        };
        self.meter.charge(u64::from(!is_optional))?;
        self.replace(answer)
    }

    fn test(&mut self, key: usize) -> Result<(), Box<Fault>> {
        let (key, chain) = (self.key(key)?, self.chains.last().copied().unwrap_or(Chain::Plain));
        let Some(Ok(value)) = self.stack.last() else { return Ok(()) };
        self.meter.work(steps::work(value, key))?;
        let found = if chain == Chain::Absent { Ok(None) } else { steps::read(value, key) };
        let is_free = chain != Chain::Plain && !matches!(found, Ok(Some(_)));
        self.meter.charge(u64::from(!is_free))?;
        if let Some(chain) = self.chains.last_mut() {
            *chain = Chain::Plain;
        }
        self.replace(found.map(|found| Value::Bool(found.is_some())))
    }

    fn combine(&mut self, deciding: bool) -> Answer<'v> {
        let (right, left) = (self.pop(), self.pop());
        match (left, right) {
            (_, Ok(Value::Bool(value))) if value == deciding => Ok(Value::Bool(value)),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!deciding)),
            (Err(fault), _) | (Ok(Value::Bool(_)), Err(fault)) => Err(fault),
            _ => Err(Fault::no_overload()),
        }
    }

    fn branch(&mut self, otherwise: Target, end: Target) -> Result<(), Box<Fault>> {
        match self.pop() {
            Ok(Value::Bool(true)) => {}
            Ok(Value::Bool(false)) => self.jump(otherwise),
            answer => {
                self.jump(end);
                self.push(Err(answer.err().unwrap_or_else(Fault::no_overload)))?;
            }
        }
        Ok(())
    }

    fn bail(&mut self, drop: usize, end: Target) -> Result<(), Box<Fault>> {
        if !self.has_failed() {
            return Ok(());
        }
        let answer = self.pop();
        self.stack.truncate(self.stack.len().saturating_sub(drop));
        self.jump(end);
        self.push(answer)
    }

    fn fallback(&mut self, unwraps: bool, end: Target) {
        match self.stack.last_mut() {
            Some(Ok(Value::Optional(None))) => {
                self.stack.pop();
                return;
            }
            Some(Ok(value)) if unwraps => {
                if let Value::Optional(Some(held)) = value {
                    *value = held.value.clone();
                }
            }
            _ => {}
        }
        self.jump(end);
    }

    /// Returns true if the element at an index of a literal may be missing.
    fn is_marked(&self, marks: Option<usize>, index: usize) -> bool {
        let marks = marks.and_then(|marks| self.program.marks.get(marks));
        marks.and_then(|marks| marks.get(index)).copied().unwrap_or_default()
    }

    fn list(&mut self, count: usize, optional: Option<usize>) -> Answer<'v> {
        let values = self.pop_values(count)?;
        self.meter.make(count * size_of::<Value<'_>>())?;
        let mut items = Vec::with_capacity(count);
        for (index, value) in values.into_iter().enumerate() {
            match value {
                item if !self.is_marked(optional, index) => items.push(item),
                Value::Optional(held) => items.extend(held.map(|held| held.value.clone())),
                other => {
                    let problem = "cannot initialize optional list element from non-optional value";
                    return Err(Fault::text(format!("{problem} {}", other.type_name())));
                }
            }
        }
        List::new(items).map(Value::List)
    }

    fn map(&mut self, count: usize, optional: Option<usize>) -> Answer<'v> {
        let values = self.pop_values(2 * count)?;
        self.meter.make(count * 100)?;
        let (mut entries, mut values) = (BTreeMap::new(), values.into_iter());
        for index in 0..count {
            let (Some(key), Some(value)) = (values.next(), values.next()) else { break };
            self.meter.work(key.weight())?;
            let (key, is_marked) = (Key::new(key)?, self.is_marked(optional, index));
            match value {
                Value::Optional(Some(held)) if is_marked => entries.insert(key, held.value.clone()),
                Value::Optional(None) if is_marked => entries.remove(&key),
                other => entries.insert(key, other),
            };
        }
        Table::new(entries).map(|table| Value::Map(Map::Table(table)))
    }

    fn message(&mut self, index: usize) -> Answer<'v> {
        let missing = || Fault::internal("no such message");
        let message = self.program.messages.get(index).ok_or_else(missing)?;
        let values = self.pop_values(message.fields.len())?;
        messages::build(message, values)
    }

    fn call(&mut self, call: usize) -> Result<(), Box<Fault>> {
        debug_assert!(call < self.program.calls.len(), "the program has the calls that it makes");
        let Some(call) = self.program.calls.get(call) else { return Ok(()) };
        debug_assert!(call.count <= self.stack.len(), "the arguments were put on the stack");
        let from = self.stack.len().saturating_sub(call.count);
        let answers = self.stack.get(from..).unwrap_or_default();
        if !call.guarded
            && let Some(answer) = answers.iter().find(|answer| !matches!(answer, Ok(Value::List(_))))
        {
            return Err(steps::not_a_list(answer));
        }
        let Some(values) = self.arguments(call, from)? else { return Ok(()) };
        let result = if let Some(pattern) = call.pattern.and_then(|pattern| self.program.patterns.get(pattern)) {
            regex::call(self.meter, call.function.name, pattern, &values)
        } else {
            // Arguments are read once by the function, and again for the price.
            let weight: usize = values.iter().map(|value| 2 * value.weight()).sum();
            self.meter.work(CALL + weight)?;
            call.function.call(self.meter, &values)
        };
        self.paid(call, &values, result)
    }

    /// Takes the arguments of a call. If one of them is an error, the first is the call's answer, for the price of all
    /// of them; `None` then.
    fn arguments(&mut self, call: &Call, from: usize) -> Result<Option<Arguments<'v>>, Box<Fault>> {
        let answers = self.stack.get(from..).unwrap_or_default();
        if answers.iter().all(Result::is_ok) {
            return self.stack.drain(from..).collect::<Result<_, _>>().map(Some);
        }
        let price = actual(call.cost, |index| answers.get(index)?.as_ref().ok(), None, self.meter)?;
        let first = self.stack.drain(from..).find(Result::is_err);
        self.meter.charge(price)?;
        self.push(first.unwrap_or(Ok(Value::Null))).map(|()| None)
    }

    /// Charges a call with values, and puts its result on the stack.
    fn paid(&mut self, call: &Call, values: &[Value<'v>], result: Answer<'v>) -> Result<(), Box<Fault>> {
        match result {
            Err(fault) if fault.is_fatal() => Err(fault),
            result => {
                let price = actual(call.cost, |index| values.get(index), result.as_ref().ok(), self.meter)?;
                self.meter.charge(price)?;
                self.meter.work(if result.is_err() { FAILURE } else { 0 })?;
                self.push(result)
            }
        }
    }

    fn in_set(&mut self, set: usize) -> Answer<'v> {
        debug_assert!(set < self.program.sets.len(), "the program has the sets that it reads");
        let item = self.pop()?;
        if matches!(item, Value::Version(_) | Value::Bytes(_) | Value::Format(_)) {
            return Err(Fault::unhashable(item.inner_type_name()));
        }
        let set = Map::Table(self.program.sets.get(set).cloned().unwrap_or_default());
        self.meter.work(set.work_of(&item))?;
        Ok(Value::Bool(set.find(&item)?.is_some()))
    }

    fn begin(&mut self, second: bool, end: Target) -> Result<(), Box<Fault>> {
        let range = self.pop();
        if let Ok(range) = &range {
            self.meter.work(4 * range.weight())?;
            if let Value::Map(map) = range {
                self.meter.work(map.len())?;
            }
        }
        match range.and_then(|range| Elements::of(range, second)) {
            Ok(elements) => {
                self.loops.push(elements);
                Ok(())
            }
            Err(fault) => {
                self.jump(end);
                self.push(Err(fault))
            }
        }
    }

    fn next_round(&mut self, first: usize, second: Option<usize>, done: Target) -> Result<(), Box<Fault>> {
        // A round does at most what stands between here and its end; many operations have no price.
        debug_assert!(!self.loops.is_empty(), "a round is one of a loop");
        let operations = self.place(done).saturating_sub(self.next);
        let Some((key, value)) = self.loops.last_mut().and_then(Elements::next) else {
            self.jump(done);
            return Ok(());
        };
        let (work, has_keys) = self.loops.last().map_or((0, false), |all| (all.work(&key), all.has_keys()));
        self.meter.work(2 * operations + work)?;
        let (key, value) = (Slot::Answer(Ok(key)), Slot::Answer(value));
        match second {
            Some(second) => {
                self.set(first, key);
                self.set(second, value);
            }
            None => self.set(first, if has_keys { key } else { value }),
        }
        Ok(())
    }

    /// Adds the last value to the list below it.
    fn append(&mut self) -> Answer<'v> {
        let (item, list) = (self.pop(), self.pop());
        self.meter.charge(1)?;
        self.meter.make(size_of::<Value<'_>>())?;
        match (list, item) {
            (Err(fault), _) | (_, Err(fault)) => Err(fault),
            (Ok(Value::List(list)), Ok(item)) => list.pushed(item).map(Value::List),
            _ => Err(Fault::no_overload()),
        }
    }

    /// Adds the last values, a key and a value or a map, to the map below them.
    fn insert(&mut self, count: usize) -> Answer<'v> {
        let answer = self.pop_values(count + 1).and_then(|values| maps::insert(self.meter, values));
        self.meter.charge(1)?;
        answer
    }
}
