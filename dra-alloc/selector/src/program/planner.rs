//! Planner: makes the program of a checked expression.

use std::collections::BTreeMap;

use super::constants::Constants;
use super::{Access, Call, Message, Op, Program, Target};
use crate::check::{Checked, Reference, Role, Variable};
use crate::declarations::declarations;
use crate::declarations::names::Name;
use crate::functions::cost::Cost;
use crate::functions::regex::{Patterns, WITH_PATTERN};
use crate::syntax::tree::{Element, Fold, Kind, NodeId};
use crate::value::{Key, Table, Value, order};

/// Price of the first part of a chain of fields: 1, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Paid,
    Free,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Visit(NodeId, Base),
    Emit(Op),
    /// Lets a label stand for the next operation.
    Place(Target),
}

/// Field or index of a chain.
#[derive(Clone, Copy)]
enum Step<'s> {
    Field(&'s str),
    Index(NodeId, Access),
}

struct Planner<'c, 's> {
    checked: &'c Checked<'s>,
    constants: Constants,
    program: Program,
    tasks: Vec<Task>,
    variables: BTreeMap<Variable, usize>,
    /// Patterns of the expression: literals, and other constants as they come.
    patterns: Patterns,
    /// Position of each pattern in the program.
    positions: BTreeMap<String, usize>,
    problem: Option<String>,
}

/// Functions that look at all of their arguments even when one is an error and it is not known which overload is meant.
const EAGER: [&str; 4] = ["size", "matches", "sort", "type"];

/// Plans the program of an expression; the error is one that every evaluation would have.
pub(crate) fn plan(checked: &Checked<'_>) -> Result<Program, String> {
    let mut planner = Planner {
        checked,
        constants: Constants::find(checked)?,
        program: Program::default(),
        tasks: vec![Task::Visit(checked.root, Base::Paid)],
        variables: BTreeMap::new(),
        patterns: checked.patterns.clone(),
        positions: BTreeMap::new(),
        problem: None,
    };
    while let Some(task) = planner.tasks.pop() {
        match task {
            Task::Visit(node, base) => planner.visit(node, base),
            Task::Emit(op) => planner.program.ops.push(op),
            Task::Place(label) => planner.place(label),
        }
    }
    let Planner { mut program, problem, variables, .. } = planner;
    program.variables = variables.len();
    problem.map_or(Ok(program), Err)
}

impl<'s> Planner<'_, 's> {
    fn label(&mut self) -> Target {
        self.program.places.push(usize::MAX);
        self.program.places.len() - 1
    }

    fn place(&mut self, label: Target) {
        if let Some(place) = self.program.places.get_mut(label) {
            *place = self.program.ops.len();
        }
    }

    /// Does tasks in their order before what is left to do.
    fn plan(&mut self, tasks: impl IntoIterator<Item = Task, IntoIter: DoubleEndedIterator>) {
        self.tasks.extend(tasks.into_iter().rev());
    }

    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn constant(&mut self, value: Value<'static>) -> usize {
        self.program.constants.push(value);
        self.program.constants.len() - 1
    }

    fn emit_constant(&mut self, value: Value<'static>) {
        let constant = self.constant(value);
        self.program.ops.push(Op::Constant(constant));
    }

    fn visit(&mut self, node: NodeId, base: Base) {
        if let Some(value) = self.constants.get(node) {
            return self.emit_constant(value.clone());
        }
        let checked = self.checked;
        match (checked.tree.kind(node), checked.reference(node)) {
            (Kind::Message { fields, .. }, Reference::Name(Name::Type(name) | Name::TypeOnly(name))) => {
                let names = fields.iter().filter_map(|field| checked.tree.text(field.key?).map(str::to_owned));
                self.program.messages.push(Message { name, fields: names.collect() });
                let values: Vec<NodeId> = fields.iter().map(|field| field.value).collect();
                self.construct(40, &values, Op::Message(self.program.messages.len() - 1));
            }
            (_, Reference::Name(name)) => self.name(*name, base),
            (Kind::Ident { .. }, Reference::Local(variable)) => self.local(*variable, base),
            (Kind::Select { operand, field, test: true }, _) => self.test(*operand, field),
            (Kind::Select { .. }, _) => self.chain(node, base),
            (Kind::Call { function, target, arguments }, _) => self.call(node, function, *target, arguments, base),
            (Kind::List(elements), _) => {
                let op = Op::List { count: elements.len(), optional: self.mark(elements) };
                self.construct(10, &checked.tree.children(node), op);
            }
            (Kind::Map(entries), _) => {
                let op = Op::Map { count: entries.len(), optional: self.mark(entries) };
                self.construct(30, &checked.tree.children(node), op);
            }
            (Kind::Fold(fold), _) => self.fold(node, fold),
            _ => self.refuse("unknown expression".to_owned()),
        }
    }

    fn charge_base(&mut self, base: Base) {
        if base == Base::Paid {
            self.program.ops.push(Op::Charge(1));
        }
    }

    fn name(&mut self, name: Name, base: Base) {
        match name {
            Name::Device => {
                self.charge_base(base);
                self.program.ops.push(Op::Device);
            }
            Name::TypeOnly(name) => self.refuse(format!("reference to undefined type: {name}")),
            Name::Type(_) | Name::NullValue => {}
        }
    }

    fn local(&mut self, variable: Variable, base: Base) {
        self.charge_base(base);
        let slot = self.slot(variable);
        let is_bound = matches!(self.checked.tree.kind(variable.fold), Kind::Fold(fold) if fold.binds);
        let is_bound = is_bound && variable.role == Role::Accumulator;
        self.program.ops.push(if is_bound { Op::Force(slot) } else { Op::Local(slot) });
    }

    fn slot(&mut self, variable: Variable) -> usize {
        let next = self.variables.len();
        *self.variables.entry(variable).or_insert(next)
    }

    /// Returns the first part of a chain of fields and indices, and its steps in order.
    fn steps(&self, mut node: NodeId) -> (NodeId, Vec<Step<'s>>) {
        let mut steps = Vec::new();
        while self.constants.get(node).is_none() && !matches!(self.checked.reference(node), Reference::Name(_)) {
            let (operand, step) = match self.checked.tree.kind(node) {
                Kind::Select { operand, field, test: false } => (*operand, Step::Field(field)),
                Kind::Call { function, arguments, .. } => match (*function, arguments.as_slice()) {
                    ("_[_]", [operand, index]) => (*operand, Step::Index(*index, Access::Required)),
                    ("_[?_]" | "_?._", [operand, index]) => (*operand, Step::Index(*index, Access::Optional)),
                    _ => break,
                },
                _ => break,
            };
            steps.push(step);
            node = operand;
        }
        steps.reverse();
        (node, steps)
    }

    fn is_ternary(&self, node: NodeId) -> bool {
        matches!(self.checked.tree.kind(node), Kind::Call { function: "_?_:_", .. })
    }

    fn is_variable(&self, node: NodeId) -> bool {
        let is_constant = self.constants.get(node).is_some();
        !is_constant && (matches!(self.checked.tree.kind(node), Kind::Ident { .. }) || self.checked.is_device(node))
    }

    /// Plans a chain of fields and indices.
    fn chain(&mut self, node: NodeId, base: Base) {
        let (root, steps) = self.steps(node);
        let mut tasks = vec![Task::Visit(root, base)];
        if base == Base::Paid && !self.is_variable(root) && !self.is_ternary(root) {
            tasks.push(Task::Emit(Op::Charge(1)));
        }
        self.plan_steps(root, &steps, tasks, &[]);
    }

    /// Plans `has(operand.field)`.
    fn test(&mut self, operand: NodeId, field: &str) {
        let (root, steps) = self.steps(operand);
        let key = self.constant(Value::owned(field));
        let mut last = vec![Op::Test(key)];
        last.extend(self.is_ternary(root).then_some(Op::Refund));
        self.plan_steps(root, &steps, vec![Task::Visit(root, Base::Free)], &last);
    }

    fn plan_steps(&mut self, root: NodeId, steps: &[Step<'s>], mut tasks: Vec<Task>, last: &[Op]) {
        let is_optional = |step: &Step<'_>| matches!(step, Step::Index(_, Access::Optional));
        let is_open = !self.checked.is_device(root) || steps.iter().any(is_optional);
        tasks.extend(is_open.then_some(Task::Emit(Op::Open)));
        for step in steps {
            match *step {
                Step::Field(name) => {
                    let key = self.constant(Value::owned(name));
                    tasks.push(Task::Emit(Op::Step { key, access: Access::Required }));
                }
                Step::Index(index, access) => self.plan_index(index, access, &mut tasks),
            }
        }
        tasks.extend(last.iter().copied().map(Task::Emit));
        tasks.extend(is_open.then_some(Task::Emit(Op::Close)));
        self.plan(tasks);
    }

    fn plan_index(&mut self, index: NodeId, access: Access, tasks: &mut Vec<Task>) {
        if let Some(key) = self.constants.get(index).cloned() {
            if !key.is_index() {
                let problem = format!("invalid qualifier type: {}", key.inner_type_name());
                return self.refuse(problem);
            }
            let key = self.constant(key);
            return tasks.push(Task::Emit(Op::Step { key, access }));
        }
        let after = self.label();
        tasks.extend([
            Task::Emit(Op::SkipIndex(after)),
            Task::Visit(index, Base::Free),
            Task::Emit(Op::Index(access)),
            Task::Place(after),
        ]);
    }

    /// Plans a literal: its price and its parts.
    fn construct(&mut self, price: u8, parts: &[NodeId], op: Op) {
        self.program.ops.push(Op::Charge(price));
        self.combine(parts, true, op);
    }

    /// Plans an operation on parts. If it is sequential, the first part that is an error ends it.
    fn combine(&mut self, parts: &[NodeId], is_sequential: bool, op: Op) {
        let end = self.label();
        let mut tasks = Vec::with_capacity(2 * parts.len() + 1);
        for (drop, part) in parts.iter().enumerate() {
            tasks.push(Task::Visit(*part, Base::Paid));
            // After the last part there is nothing left to leave out.
            let bails = is_sequential && drop + 1 < parts.len();
            tasks.extend(bails.then_some(Task::Emit(Op::Bail { drop, end })));
        }
        tasks.extend([Task::Emit(op), Task::Place(end)]);
        self.plan(tasks);
    }

    fn mark(&mut self, elements: &[Element]) -> Option<usize> {
        if !elements.iter().any(|element| element.optional) {
            return None;
        }
        self.program.marks.push(elements.iter().map(|element| element.optional).collect());
        Some(self.program.marks.len() - 1)
    }

    fn call(&mut self, node: NodeId, function: &'s str, target: Option<NodeId>, arguments: &[NodeId], base: Base) {
        match (function, target, arguments) {
            ("_[_]" | "_[?_]" | "_?._", ..) => self.chain(node, base),
            ("_&&_", _, [left, right]) => self.logic(*left, *right, false),
            ("_||_", _, [left, right]) => self.logic(*left, *right, true),
            ("_?_:_", _, [condition, then, otherwise]) => self.ternary(*condition, *then, *otherwise),
            ("@not_strictly_false", _, [value]) => {
                let price = Task::Emit(Op::Charge(1));
                self.plan([Task::Visit(*value, Base::Paid), price, Task::Emit(Op::NotStrictlyFalse)]);
            }
            ("or" | "orValue", Some(optional), [other]) => {
                let end = self.label();
                let unwraps = function == "orValue";
                self.plan([
                    Task::Visit(optional, Base::Paid),
                    Task::Emit(Op::Fallback { unwraps, end }),
                    Task::Visit(*other, Base::Paid),
                    Task::Place(end),
                ]);
            }
            ("@in", _, [item, list]) if self.checked.overloads(node).len() == 1 && self.in_set(*item, *list) => {}
            _ => {
                let all: Vec<NodeId> = target.into_iter().chain(arguments.iter().copied()).collect();
                self.ordinary(node, function, &all);
            }
        }
    }

    fn logic(&mut self, left: NodeId, right: NodeId, deciding: bool) {
        let end = self.label();
        self.plan([
            Task::Visit(left, Base::Paid),
            Task::Emit(Op::Decide(deciding, end)),
            Task::Visit(right, Base::Paid),
            Task::Emit(Op::Combine(deciding)),
            Task::Place(end),
        ]);
    }

    fn ternary(&mut self, condition: NodeId, then: NodeId, other: NodeId) {
        let (otherwise, end) = (self.label(), self.label());
        self.plan([
            Task::Visit(condition, Base::Paid),
            Task::Emit(Op::Branch { otherwise, end }),
            Task::Visit(then, Base::Free),
            Task::Emit(Op::Jump(end)),
            Task::Place(otherwise),
            Task::Visit(other, Base::Free),
            Task::Place(end),
        ]);
    }

    /// Plans `item in [constants]` as a look-up; false if the list has other elements than scalars.
    fn in_set(&mut self, item: NodeId, list: NodeId) -> bool {
        let Some(Value::List(list)) = self.constants.get(list) else { return false };
        let items = list.items();
        if items.is_empty() {
            self.emit_constant(Value::Bool(false));
            return true;
        }
        if !items.iter().all(Value::is_index) {
            return false;
        }
        let keys = items.iter().flat_map(|item| order::alike(item).chain([item.clone()]));
        let keys: BTreeMap<_, _> = keys.filter_map(|key| Some((Key::new(key).ok()?, Value::Null))).collect();
        let Ok(set) = Table::new(keys) else { return false };
        self.program.sets.push(set);
        let set = self.program.sets.len() - 1;
        self.plan([Task::Visit(item, Base::Paid), Task::Emit(Op::InSet(set))]);
        true
    }

    /// Plans a call of a function with its arguments.
    fn ordinary(&mut self, node: NodeId, function: &str, arguments: &[NodeId]) {
        let overloads = self.checked.overloads(node);
        let Some(function) = declarations().function(function) else {
            return self.refuse(format!("no such function: {function}"));
        };
        let name = function.name;
        let costs: Vec<Cost> = overloads.iter().map(|overload| overload.cost).collect();
        let cost = match costs.as_slice() {
            [one] => *one,
            [text @ (Cost::ContainsIpText | Cost::ContainsCidrText), ..] => *text,
            [first, rest @ ..] if rest.iter().all(|cost| cost == first) && !first.is_of_overload() => *first,
            _ => Cost::One,
        };
        let is_operator = name.starts_with(['_', '@', '!', '-']);
        let is_dynamic = overloads.len() > 1;
        let count = arguments.len();
        let pattern = match self.pattern(name, arguments) {
            Ok(pattern) => pattern,
            Err(problem) => return self.refuse(problem),
        };
        let is_lenient = is_operator || EAGER.contains(&name);
        let is_sequential = count >= 3 || name == "format" || (is_dynamic && !is_lenient) || pattern.is_some();
        let guarded = name != "distinct" && (is_dynamic || !matches!(name, "sort" | "@sortByAssociatedKeys"));
        self.program.calls.push(Call { function, cost, count, pattern, guarded });
        self.combine(arguments, is_sequential, Op::Call(self.program.calls.len() - 1));
    }

    /// Returns the position of the pattern of a call, if it is a constant.
    fn pattern(&mut self, name: &str, arguments: &[NodeId]) -> Result<Option<usize>, String> {
        let text = match arguments.get(1).and_then(|pattern| self.constants.get(*pattern)) {
            Some(Value::String(text)) if WITH_PATTERN.contains(&name) => text,
            _ => return Ok(None),
        };
        if let Some(known) = self.positions.get(&**text) {
            return Ok(Some(*known));
        }
        let position = self.program.patterns.len();
        self.program.patterns.push(self.patterns.add(text)?);
        self.positions.insert(text.to_string(), position);
        Ok(Some(position))
    }

    fn fold(&mut self, node: NodeId, fold: &Fold<'s>) {
        let variable = |role| Variable { fold: node, role };
        let slot = self.slot(variable(Role::Accumulator));
        if fold.binds {
            return self.bind(fold, slot);
        }
        let first = self.slot(variable(Role::First));
        let second = fold.second.map(|_| self.slot(variable(Role::Second)));
        let (again, done, end) = (self.label(), self.label(), self.label());
        let mut tasks = vec![
            Task::Visit(fold.range, Base::Paid),
            Task::Emit(Op::Begin { second: second.is_some(), end }),
            Task::Visit(fold.init, Base::Paid),
            Task::Emit(Op::Store(slot)),
            Task::Place(again),
            Task::Emit(Op::Next { first, second, done }),
        ];
        if !matches!(self.constants.get(fold.condition), Some(Value::Bool(true))) {
            tasks.extend([Task::Visit(fold.condition, Base::Paid), Task::Emit(Op::While(done))]);
        }
        self.plan_step(fold, fold.step, slot, &mut tasks);
        tasks.extend([
            Task::Emit(Op::Store(slot)),
            Task::Emit(Op::Jump(again)),
            Task::Place(done),
            Task::Emit(Op::End),
            Task::Visit(fold.result, Base::Paid),
            Task::Place(end),
        ]);
        self.plan(tasks);
    }

    /// Plans the step of a loop. Lists and maps that a loop builds grow in place.
    fn plan_step(&mut self, fold: &Fold<'s>, step: NodeId, slot: usize, tasks: &mut Vec<Task>) {
        let Kind::Call { function, arguments, .. } = self.checked.tree.kind(step) else {
            return tasks.push(Task::Visit(step, Base::Paid));
        };
        let grows = matches!(self.checked.tree.kind(fold.init), Kind::List(_) | Kind::Map(_));
        let read = [Task::Emit(Op::Charge(1)), Task::Emit(Op::Take(slot))];
        match (*function, arguments.as_slice()) {
            ("_?_:_", [condition, then, _]) if grows => {
                let (otherwise, end) = (self.label(), self.label());
                tasks.extend([Task::Visit(*condition, Base::Paid), Task::Emit(Op::Branch { otherwise, end })]);
                self.plan_step(fold, *then, slot, tasks);
                let same = [Task::Place(otherwise), Task::Emit(Op::Take(slot)), Task::Place(end)];
                tasks.extend([Task::Emit(Op::Jump(end))].into_iter().chain(same));
            }
            ("_+_", [_, list]) if grows => {
                tasks.extend(read);
                tasks.extend(self.constants.get(*list).is_none().then_some(Task::Emit(Op::Charge(10))));
                let items = self.checked.tree.children(*list).into_iter();
                tasks.extend(items.map(|item| Task::Visit(item, Base::Paid)).chain([Task::Emit(Op::Append)]));
            }
            ("cel.@mapInsert", [_, parts @ ..]) => {
                let end = self.label();
                tasks.extend(read);
                for (drop, part) in parts.iter().enumerate() {
                    let is_sequential = parts.len() > 1;
                    tasks.extend(is_sequential.then_some(Task::Emit(Op::Bail { drop, end })));
                    tasks.push(Task::Visit(*part, Base::Paid));
                }
                tasks.extend([Task::Emit(Op::Insert { count: parts.len() }), Task::Place(end)]);
            }
            _ => tasks.push(Task::Visit(step, Base::Paid)),
        }
    }

    /// Plans a name for a value that is computed when it is first read.
    fn bind(&mut self, fold: &Fold<'s>, slot: usize) {
        let (init, body) = (self.label(), self.label());
        self.plan([
            Task::Emit(Op::Defer(slot, init)),
            Task::Emit(Op::Jump(body)),
            Task::Place(init),
            Task::Visit(fold.init, Base::Paid),
            Task::Emit(Op::Return(slot)),
            Task::Place(body),
            Task::Visit(fold.result, Base::Paid),
        ]);
    }
}
