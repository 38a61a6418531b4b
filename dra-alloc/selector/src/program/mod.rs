//! Program of an expression: a list of small operations on a stack of values.
//!
//! Tests: `tests/it/generated.rs`, `tests/it/lazy.rs`.

mod constants;
pub(super) mod machine;
mod messages;
mod planner;
mod steps;

use std::sync::Arc;

use super::functions::cost::Cost;
use super::functions::function::Function;
use super::functions::regex::Pattern;
use super::value::{Table, Value};
pub(super) use planner::plan;

/// Place in a program, by the number of its label.
type Target = usize;

/// Way in which a chain reads a field or an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// `.field`, `[key]`: an error if it is not there.
    Required,
    /// `.?field`, `[?key]`: an optional, from here to the end of the chain.
    Optional,
}

/// Operation of a program.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Charges a cost.
    Charge(u8),
    /// Takes 1 back.
    Refund,
    Constant(usize),
    Device,
    /// Reads a variable.
    Local(usize),
    /// Reads an accumulator that is set anew before it is read again.
    Take(usize),
    /// Reads a bound name, whose value is computed when it is first read.
    Force(usize),
    /// Begins a chain of fields and indices: an optional base makes all of its steps optional.
    Open,
    Close,
    /// Reads a field or an element whose key is a constant.
    Step {
        key: usize,
        access: Access,
    },
    /// Reads an element whose key is on the stack.
    Index(Access),
    /// Goes on after an index if there is nothing to read it from.
    SkipIndex(Target),
    /// Tells whether a field is there.
    Test(usize),
    Jump(Target),
    /// Goes on at the target if the last value is the bool that decides, and stays: false of `&&`, true of `||`.
    Decide(bool, Target),
    /// Combines the two last values, of which the bool decides whatever the other one is.
    Combine(bool),
    /// Goes on at one target for false, at the other for what is no bool.
    Branch {
        otherwise: Target,
        end: Target,
    },
    /// Goes on at the target if the last value is an error; drops values below it.
    Bail {
        drop: usize,
        end: Target,
    },
    /// Goes on at the target unless the last value is an optional without value. What it holds replaces it.
    Fallback {
        unwraps: bool,
        end: Target,
    },
    NotStrictlyFalse,
    List {
        count: usize,
        optional: Option<usize>,
    },
    Map {
        count: usize,
        optional: Option<usize>,
    },
    Message(usize),
    Call(usize),
    /// Looks a value up in a set of constants.
    InSet(usize),
    /// Begins a loop over the last value.
    Begin {
        second: bool,
        end: Target,
    },
    Next {
        first: usize,
        second: Option<usize>,
        done: Target,
    },
    /// Ends the loop if the last value is false.
    While(Target),
    /// Sets a variable.
    Store(usize),
    Append,
    Insert {
        count: usize,
    },
    End,
    /// Keeps where the value of a bound name is computed.
    Defer(usize, Target),
    /// Ends the computation of a bound name.
    Return(usize),
}

/// Function with the price of its call.
#[derive(Clone, Copy, Debug)]
struct Call {
    function: &'static Function,
    cost: Cost,
    count: usize,
    /// Pattern that is a constant, the second argument.
    pattern: Option<usize>,
    /// Looks whether its arguments are lists. Upstream's functions that do not end the evaluation.
    guarded: bool,
}

/// Message literal: its name and its fields.
#[derive(Clone, Debug)]
struct Message {
    name: &'static str,
    fields: Vec<String>,
}

/// Program of an expression.
#[derive(Debug, Default)]
pub(super) struct Program {
    ops: Vec<Op>,
    constants: Vec<Value<'static>>,
    calls: Vec<Call>,
    patterns: Vec<Arc<Pattern>>,
    sets: Vec<Table<'static>>,
    messages: Vec<Message>,
    /// Marks of elements that may be missing.
    marks: Vec<Vec<bool>>,
    /// Index of the operation at each label.
    places: Vec<usize>,
    variables: usize,
}

impl Program {
    /// Returns the work of compiling all patterns. It counts in each evaluation, so that its result does not depend on
    /// those before it.
    pub(super) fn compilation(&self) -> usize {
        self.patterns.iter().map(|pattern| pattern.compilation()).sum()
    }

    /// Returns the memory of the program, in bytes: that of its operations and patterns once they are compiled, and roughly that of its
    /// constants.
    pub(super) fn memory(&self) -> usize {
        let patterns: usize = self.patterns.iter().map(|pattern| pattern.size).sum();
        let operations = self.ops.len() * size_of::<Op>() + self.places.len() * size_of::<usize>();
        let tables = self.calls.len() * size_of::<Call>() + (self.sets.len() + self.messages.len()) * SMALL;
        operations + self.constants.len() * SMALL + tables + patterns
    }
}

/// Memory of a small allocation with its entry in a list, in bytes.
const SMALL: usize = 128;
