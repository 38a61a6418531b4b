//! Typed expressions from bytes: each byte decides once, and what is left out is the simplest.

use super::expression::Expression;

/// Type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Ints,
    Texts,
    Map,
    OptionalInt,
    Dyn,
}

/// Bytes that decide, and the names that can be used.
struct Generator<'b> {
    bytes: std::slice::Iter<'b, u8>,
    names: Vec<(String, Type)>,
    made: usize,
}

/// Largest depth of an expression.
const DEPTH: usize = 5;

const TYPES: [Type; 9] = [
    Type::Bool,
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Text,
    Type::Ints,
    Type::Texts,
    Type::Map,
    Type::OptionalInt,
];

pub(crate) fn expression(bytes: &[u8]) -> Expression {
    let mut generator = Generator { bytes: bytes.iter(), names: Vec::new(), made: 0 };
    let of = generator.one_of(&TYPES);
    generator.expression(of, DEPTH)
}

impl Generator<'_> {
    fn choice(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or_default()) % count
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.choice(all.len())].clone()
    }

    fn boxed(&mut self, of: Type, depth: usize) -> Box<Expression> {
        Box::new(self.expression(of, depth))
    }

    fn expression(&mut self, of: Type, depth: usize) -> Expression {
        let Some(less) = depth.checked_sub(1) else { return self.leaf(of) };
        match self.choice(10) {
            0 => self.leaf(of),
            1 => Expression::Ternary(self.boxed(Type::Bool, less), self.boxed(of, less), self.boxed(of, less)),
            2 => self.bind(of, less),
            3 => self.named(of),
            _ => self.compound(of, less),
        }
    }

    fn leaf(&mut self, of: Type) -> Expression {
        match of {
            Type::Bool => Expression::Bool(self.choice(2) == 1),
            Type::Int => Expression::Int(self.one_of(&[0, 1, 2, -1, 7, 1 << 50, i64::MAX, i64::MIN])),
            Type::Uint => Expression::Uint(self.one_of(&[0, 1, 3, 1 << 50, u64::MAX])),
            Type::Double => Expression::Double(self.one_of(&[0.0, 1.0, 2.5, 1e300])),
            Type::Text => Expression::Text(self.one_of(&["", "a", "ab", "ä-b", "h100", "B,a"]).to_owned()),
            Type::Ints => Expression::List((0..=self.choice(3)).map(|_| self.leaf(Type::Int)).collect()),
            Type::Texts => Expression::List((0..=self.choice(3)).map(|_| self.leaf(Type::Text)).collect()),
            Type::Map => {
                Expression::Map(["a", "b"].map(|key| (key.to_owned(), self.leaf(Type::Int))).into_iter().collect())
            }
            Type::OptionalInt => Expression::Call("optional.of", vec![self.leaf(Type::Int)]),
            Type::Dyn => self.attribute(),
        }
    }

    /// Makes an expression over an attribute, whose type is not known.
    fn attribute(&mut self) -> Expression {
        let name = self.one_of(&["count", "model", "healthy", "nodes", "absent"]);
        Expression::Select(Box::new(Expression::Attributes), name)
    }

    /// Uses a name, if there is one of this type.
    fn named(&mut self, of: Type) -> Expression {
        let fitting: Vec<String> =
            self.names.iter().filter(|(_, other)| *other == of).map(|(name, _)| name.clone()).collect();
        if fitting.is_empty() { self.leaf(of) } else { Expression::Variable(self.one_of(&fitting)) }
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn with_name<T>(&mut self, name: &str, of: Type, body: impl FnOnce(&mut Self) -> T) -> T {
        self.names.push((name.to_owned(), of));
        let made = body(self);
        self.names.pop();
        made
    }

    fn bind(&mut self, of: Type, depth: usize) -> Expression {
        let bound = self.one_of(&TYPES);
        let (name, value) = (self.fresh(), self.boxed(bound, depth));
        let body = self.with_name(&name, bound, |inner| inner.boxed(of, depth));
        Expression::Bind(name, value, body)
    }

    fn method(&mut self, target: Type, depth: usize, name: &'static str, arguments: &[Type]) -> Expression {
        let target = self.boxed(target, depth);
        Expression::Method(target, name, arguments.iter().map(|of| self.expression(*of, depth)).collect())
    }

    fn call(&mut self, name: &'static str, depth: usize, arguments: &[Type]) -> Expression {
        Expression::Call(name, arguments.iter().map(|of| self.expression(*of, depth)).collect())
    }

    fn binary(&mut self, operators: &[&'static str], of: Type, depth: usize) -> Expression {
        let operator = self.one_of(operators);
        Expression::Binary(operator, self.boxed(of, depth), self.boxed(of, depth))
    }

    /// Makes a macro over a list or a map; its variable is an element, or a key.
    fn a_loop(&mut self, name: &'static str, range: Type, body: Type, depth: usize) -> Expression {
        let element = if range == Type::Ints { Type::Int } else { Type::Text };
        let (variable, range) = (self.fresh(), self.boxed(range, depth));
        let body = self.with_name(&variable, element, |inner| inner.expression(body, depth));
        Expression::Loop(range, name, vec![variable], vec![body])
    }

    /// Makes a macro with two variables.
    fn a_double_loop(&mut self, name: &'static str, body: Type, depth: usize) -> Expression {
        let (first, second, range) = (self.fresh(), self.fresh(), self.boxed(Type::Ints, depth));
        let body = self.with_name(&first, Type::Int, |inner| {
            inner.with_name(&second, Type::Int, |inner| inner.expression(body, depth))
        });
        Expression::Loop(range, name, vec![first, second], vec![body])
    }

    fn compound(&mut self, of: Type, depth: usize) -> Expression {
        match of {
            Type::Bool => self.condition(depth),
            Type::Int => self.int(depth),
            Type::Uint => match self.choice(3) {
                // A conversion of a constant would fail when it is compiled.
                0 => Expression::Call("uint", vec![self.method(Type::Ints, depth, "sum", &[])]),
                _ => self.binary(&["+", "-", "*", "/", "%"], Type::Uint, depth),
            },
            Type::Double => match self.choice(4) {
                0 => self.call("double", depth, &[Type::Int]),
                1 => Expression::Prefix("-", self.boxed(Type::Double, depth)),
                _ => self.binary(&["+", "-", "*", "/"], Type::Double, depth),
            },
            Type::Text => self.text(depth),
            Type::Ints => self.ints(depth),
            Type::Texts => match self.choice(5) {
                0 => self.binary(&["+"], Type::Texts, depth),
                1 => self.a_loop("map", Type::Map, Type::Text, depth),
                2 => self.a_loop("filter", Type::Texts, Type::Bool, depth),
                3 => {
                    let text = self.boxed(Type::Text, depth);
                    Expression::Method(text, "split", vec![Expression::Text(self.one_of(&["a", ","]).to_owned())])
                }
                _ => self.method(Type::Texts, depth, "distinct", &[]),
            },
            Type::Map => {
                let keys = ["a", "b", "c"].into_iter().take(1 + self.choice(3));
                Expression::Map(keys.map(|key| (key.to_owned(), self.expression(Type::Int, depth))).collect())
            }
            Type::OptionalInt => match self.choice(4) {
                0 => self.call("optional.of", depth, &[Type::Int]),
                1 => self.method(Type::Ints, depth, "first", &[]),
                2 => Expression::OptionalIndex(self.boxed(Type::Ints, depth), self.boxed(Type::Int, depth)),
                _ => Expression::OptionalSelect(self.boxed(Type::Map, depth), "b"),
            },
            Type::Dyn => match self.choice(3) {
                0 => {
                    let inner = self.one_of(&TYPES[..7]);
                    self.call("dyn", depth, &[inner])
                }
                1 => self.binary(&["+", "-"], Type::Dyn, depth),
                _ => self.attribute(),
            },
        }
    }

    fn condition(&mut self, depth: usize) -> Expression {
        const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        match self.choice(22) {
            0 => Expression::Prefix("!", self.boxed(Type::Bool, depth)),
            1..=4 => self.binary(&["&&", "||"], Type::Bool, depth),
            5 => self.binary(&COMPARISONS, Type::Int, depth),
            6 => self.binary(&COMPARISONS, Type::Uint, depth),
            7 => self.binary(&COMPARISONS, Type::Double, depth),
            8 => self.binary(&COMPARISONS, Type::Text, depth),
            9 => self.binary(&["==", "!="], Type::Ints, depth),
            10 => self.binary(&["==", "!="], Type::Map, depth),
            11 => self.binary(&COMPARISONS, Type::Dyn, depth),
            12 => Expression::Binary("in", self.boxed(Type::Int, depth), self.boxed(Type::Ints, depth)),
            13 => Expression::Binary("in", self.boxed(Type::Text, depth), self.boxed(Type::Map, depth)),
            14 => {
                let name = self.one_of(&["contains", "startsWith", "endsWith"]);
                self.method(Type::Text, depth, name, &[Type::Text])
            }
            15 | 16 => {
                let name = self.one_of(&["all", "exists", "exists_one"]);
                let range = self.one_of(&[Type::Ints, Type::Texts, Type::Map]);
                self.a_loop(name, range, Type::Bool, depth)
            }
            17 => {
                let name = self.one_of(&["all", "exists"]);
                self.a_double_loop(name, Type::Bool, depth)
            }
            18 => Expression::Has(
                Box::new(if self.choice(2) == 0 { Expression::Attributes } else { self.expression(Type::Map, depth) }),
                self.one_of(&["count", "b", "absent"]),
            ),
            19 => self.method(Type::OptionalInt, depth, "hasValue", &[]),
            20 => {
                let name = self.one_of(&["sets.contains", "sets.intersects"]);
                self.call(name, depth, &[Type::Ints, Type::Ints])
            }
            _ => self.method(Type::Dyn, depth, "includes", &[Type::Dyn]),
        }
    }

    fn int(&mut self, depth: usize) -> Expression {
        match self.choice(14) {
            0 => Expression::Prefix("-", self.boxed(Type::Int, depth)),
            1..=4 => self.binary(&["+", "-", "*", "/", "%"], Type::Int, depth),
            5 => {
                let of = self.one_of(&[Type::Text, Type::Ints, Type::Texts, Type::Map, Type::Dyn]);
                self.call("size", depth, &[of])
            }
            6 => Expression::Index(self.boxed(Type::Ints, depth), self.boxed(Type::Int, depth)),
            7 => Expression::Index(self.boxed(Type::Map, depth), self.boxed(Type::Text, depth)),
            8 => Expression::Select(self.boxed(Type::Map, depth), self.one_of(&["a", "c"])),
            9 => {
                let name = self.one_of(&["sum", "min", "max"]);
                self.method(Type::Ints, depth, name, &[])
            }
            10 => self.method(Type::OptionalInt, depth, "orValue", &[Type::Int]),
            11 => self.method(Type::OptionalInt, depth, "value", &[]),
            12 => {
                let name = self.one_of(&["indexOf", "lastIndexOf"]);
                self.method(Type::Ints, depth, name, &[Type::Int])
            }
            _ => self.method(Type::Text, depth, "indexOf", &[Type::Text]),
        }
    }

    fn text(&mut self, depth: usize) -> Expression {
        match self.choice(9) {
            0 | 1 => self.binary(&["+"], Type::Text, depth),
            2 => {
                let name = self.one_of(&["upperAscii", "lowerAscii"]);
                self.method(Type::Text, depth, name, &[])
            }
            3 => {
                let name = self.one_of(&["charAt", "substring"]);
                self.method(Type::Text, depth, name, &[Type::Int])
            }
            4 => {
                let (text, new) = (self.boxed(Type::Text, depth), self.expression(Type::Text, depth));
                Expression::Method(text, "replace", vec![Expression::Text("a".to_owned()), new])
            }
            5 => self.method(Type::Texts, depth, "join", &[Type::Text]),
            6 => {
                let of = self.one_of(&[Type::Int, Type::Bool]);
                self.call("string", depth, &[of])
            }
            _ => Expression::Index(self.boxed(Type::Texts, depth), self.boxed(Type::Int, depth)),
        }
    }

    fn ints(&mut self, depth: usize) -> Expression {
        match self.choice(10) {
            0 => self.binary(&["+"], Type::Ints, depth),
            1 => {
                let range = self.one_of(&[Type::Ints, Type::Texts, Type::Map]);
                self.a_loop("map", range, Type::Int, depth)
            }
            2 => self.a_loop("filter", Type::Ints, Type::Bool, depth),
            3 => {
                let (variable, range) = (self.fresh(), self.boxed(Type::Ints, depth));
                let bodies = self.with_name(&variable, Type::Int, |inner| {
                    vec![inner.expression(Type::Bool, depth), inner.expression(Type::Int, depth)]
                });
                Expression::Loop(range, "map", vec![variable], bodies)
            }
            4 => self.a_double_loop("transformList", Type::Int, depth),
            5 => {
                let name = self.one_of(&["reverse", "distinct", "sort"]);
                self.method(Type::Ints, depth, name, &[])
            }
            6 => self.method(Type::Ints, depth, "slice", &[Type::Int, Type::Int]),
            _ => Expression::List((0..=self.choice(3)).map(|_| self.expression(Type::Int, depth)).collect()),
        }
    }
}
