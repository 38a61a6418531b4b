//! Values of expressions by plain recursion.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::expression::Expression;

/// Value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Plain {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
    Optional(Option<Box<Self>>),
}

/// Reason that there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    NoSuchKey(String),
    NoSuchOverload,
    Text(String),
}

pub(crate) type Answer = Result<Plain, Fault>;

/// Content of a name: a value of a loop, or an expression with the names that it can use.
#[derive(Clone, Debug)]
pub(crate) enum Bound<'e> {
    Value(Plain),
    Expression(&'e Expression, Names<'e>),
}

type Names<'e> = BTreeMap<String, Bound<'e>>;

/// Values are the same if their text is: a double that is no number, too.
impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

const OVERLOAD: Answer = Err(Fault::NoSuchOverload);

fn text(message: impl Into<String>) -> Answer {
    Err(Fault::Text(message.into()))
}

fn int(number: usize) -> Plain {
    Plain::Int(number.try_into().unwrap())
}

pub(crate) fn evaluate<'e>(expression: &'e Expression, attributes: &Plain, names: &Names<'e>) -> Answer {
    let value = |expression: &'e Expression| evaluate(expression, attributes, names);
    match expression {
        Expression::Bool(value) => Ok(Plain::Bool(*value)),
        Expression::Int(number) => Ok(Plain::Int(*number)),
        Expression::Uint(number) => Ok(Plain::Uint(*number)),
        Expression::Double(number) => Ok(Plain::Double(*number)),
        Expression::Text(text) => Ok(Plain::Text(text.clone())),
        Expression::List(items) => Ok(Plain::List(items.iter().map(value).collect::<Result<_, _>>()?)),
        Expression::Map(entries) => {
            let entries = entries.iter().map(|(key, entry)| Ok((key.clone(), value(entry)?)));
            Ok(Plain::Map(entries.collect::<Result<_, _>>()?))
        }
        Expression::Variable(name) => match &names[name] {
            Bound::Value(value) => Ok(value.clone()),
            Bound::Expression(bound, names) => evaluate(bound, attributes, names),
        },
        Expression::Attributes => Ok(attributes.clone()),
        Expression::Prefix("!", operand) => match value(operand)? {
            Plain::Bool(value) => Ok(Plain::Bool(!value)),
            _ => OVERLOAD,
        },
        Expression::Prefix(_, operand) => match value(operand)? {
            Plain::Int(number) => number.checked_neg().map_or_else(|| text("integer overflow"), |n| Ok(Plain::Int(n))),
            Plain::Double(number) => Ok(Plain::Double(-number)),
            _ => OVERLOAD,
        },
        Expression::Binary("&&", left, right) => logic(value(left), value(right), false),
        Expression::Binary("||", left, right) => logic(value(left), value(right), true),
        Expression::Binary(operator, left, right) => {
            // Both sides are evaluated; the first error counts.
            let (left, right) = (value(left), value(right));
            binary(operator, left?, right?)
        }
        Expression::Ternary(condition, then, otherwise) => match value(condition)? {
            Plain::Bool(true) => value(then),
            Plain::Bool(false) => value(otherwise),
            _ => OVERLOAD,
        },
        Expression::Index(container, key) => index(&value(container)?, &value(key)?),
        Expression::OptionalIndex(container, key) => optional(&value(container)?, &value(key)?),
        Expression::Select(container, field) => index(&value(container)?, &Plain::Text((*field).to_owned())),
        Expression::OptionalSelect(container, field) => optional(&value(container)?, &Plain::Text((*field).to_owned())),
        Expression::Has(container, field) => {
            Ok(Plain::Bool(found(&value(container)?, &Plain::Text((*field).to_owned()))?.is_some()))
        }
        Expression::Call("dyn", arguments) => value(&arguments[0]),
        Expression::Call(function, arguments) => {
            call(function, &arguments.iter().map(value).collect::<Result<Vec<_>, _>>()?)
        }
        // What an optional has is returned as it is, so that the other value is only read without one.
        Expression::Method(target, "orValue", other) => match value(target)? {
            Plain::Optional(Some(held)) => Ok(*held),
            Plain::Optional(None) => value(&other[0]),
            plain => Ok(plain),
        },
        Expression::Method(target, function, arguments) => {
            let all = std::iter::once(&**target).chain(arguments).map(value);
            call(function, &all.collect::<Result<Vec<_>, _>>()?)
        }
        Expression::Bind(name, bound, body) => {
            let mut inner = names.clone();
            inner.insert(name.clone(), Bound::Expression(bound, names.clone()));
            evaluate(body, attributes, &inner)
        }
        Expression::Loop(range, name, variables, bodies) => {
            let rounds = rounds(value(range)?, variables.len())?;
            let mut answers = Vec::new();
            for round in rounds {
                let mut inner = names.clone();
                inner.extend(variables.iter().cloned().zip(round.iter().cloned().map(Bound::Value)));
                let bodies = bodies.iter().map(|body| evaluate(body, attributes, &inner)).collect::<Vec<_>>();
                answers.push((round, bodies));
            }
            whole_loop(name, &answers)
        }
    }
}

/// Returns the values of a loop's variables in each round.
fn rounds(range: Plain, variables: usize) -> Result<Vec<Vec<Plain>>, Fault> {
    Ok(match (range, variables) {
        (Plain::List(items), 1) => items.into_iter().map(|item| vec![item]).collect(),
        (Plain::List(items), _) => items.into_iter().enumerate().map(|(at, item)| vec![int(at), item]).collect(),
        (Plain::Map(entries), 1) => entries.into_keys().map(|key| vec![Plain::Text(key)]).collect(),
        (Plain::Map(entries), _) => entries.into_iter().map(|(key, value)| vec![Plain::Text(key), value]).collect(),
        (other, 1) => return Err(Fault::Text(format!("got '{}', expected iterable type", inner_type(&other)))),
        (other, _) => {
            return Err(Fault::Text(format!("unsupported comprehension range type: {}", inner_type(&other))));
        }
    })
}

fn inner_type(value: &Plain) -> &'static str {
    match value {
        Plain::Bool(_) => "types.Bool",
        Plain::Int(_) => "types.Int",
        Plain::Uint(_) => "types.Uint",
        Plain::Double(_) => "types.Double",
        Plain::Text(_) => "types.String",
        Plain::List(_) | Plain::Map(_) => "",
        Plain::Optional(_) => "*types.Optional",
    }
}

/// Puts the rounds of a loop together.
fn whole_loop(name: &str, rounds: &[(Vec<Plain>, Vec<Answer>)]) -> Answer {
    let first = |bodies: &[Answer]| bodies[0].clone();
    match name {
        "all" | "exists" => {
            let absorbing = name == "exists";
            let start = Ok(Plain::Bool(!absorbing));
            rounds.iter().fold(start, |so_far, (_, bodies)| logic(so_far, first(bodies), absorbing))
        }
        "exists_one" => {
            let count = rounds.iter().fold(Ok(0), |count, (_, bodies)| match first(bodies)? {
                Plain::Bool(true) => count.map(|count: usize| count + 1),
                Plain::Bool(false) => count,
                _ => Err(Fault::NoSuchOverload),
            });
            Ok(Plain::Bool(count? == 1))
        }
        "filter" => {
            let kept = rounds.iter().fold(Ok(Vec::new()), |kept, (variables, bodies)| match first(bodies)? {
                Plain::Bool(true) => pushed(kept, Ok(variables.last().unwrap().clone())),
                Plain::Bool(false) => kept,
                _ => Err(Fault::NoSuchOverload),
            });
            kept.map(Plain::List)
        }
        // With a condition in front.
        "map" if rounds.iter().any(|(_, bodies)| bodies.len() == 2) => {
            let kept = rounds.iter().fold(Ok(Vec::new()), |kept, (_, bodies)| match first(bodies)? {
                Plain::Bool(true) => pushed(kept, bodies[1].clone()),
                Plain::Bool(false) => kept,
                _ => Err(Fault::NoSuchOverload),
            });
            kept.map(Plain::List)
        }
        _ => rounds.iter().fold(Ok(Vec::new()), |made, (_, bodies)| pushed(made, first(bodies))).map(Plain::List),
    }
}

fn pushed(list: Result<Vec<Plain>, Fault>, item: Answer) -> Result<Vec<Plain>, Fault> {
    let mut list = list?;
    list.push(item?);
    Ok(list)
}

/// `&&` and `||`: the absorbing value wins, then the first error.
fn logic(left: Answer, right: Answer, absorbing: bool) -> Answer {
    let decides = |answer: &Answer| matches!(answer, Ok(Plain::Bool(value)) if *value == absorbing);
    if decides(&left) || decides(&right) {
        return Ok(Plain::Bool(absorbing));
    }
    for side in [left, right] {
        if !matches!(side?, Plain::Bool(_)) {
            return OVERLOAD;
        }
    }
    Ok(Plain::Bool(!absorbing))
}

fn binary(operator: &str, left: Plain, right: Plain) -> Answer {
    match operator {
        "==" => return Ok(Plain::Bool(equal(&left, &right))),
        "!=" => return Ok(Plain::Bool(!equal(&left, &right))),
        "<" => return Ok(Plain::Bool(order(&left, &right)?.is_lt())),
        "<=" => return Ok(Plain::Bool(order(&left, &right)?.is_le())),
        ">" => return Ok(Plain::Bool(order(&left, &right)?.is_gt())),
        ">=" => return Ok(Plain::Bool(order(&left, &right)?.is_ge())),
        "in" => {
            return match (left, right) {
                (item, Plain::List(items)) => Ok(Plain::Bool(items.iter().any(|other| equal(&item, other)))),
                (Plain::Text(key), Plain::Map(entries)) => Ok(Plain::Bool(entries.contains_key(&key))),
                (_, Plain::Map(_)) => Ok(Plain::Bool(false)),
                _ => OVERLOAD,
            };
        }
        _ => {}
    }
    match (left, right) {
        (Plain::Int(left), Plain::Int(right)) => ints(operator, left, right),
        (Plain::Uint(left), Plain::Uint(right)) => uints(operator, left, right),
        (Plain::Double(left), Plain::Double(right)) => Ok(Plain::Double(match operator {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => return OVERLOAD,
        })),
        (Plain::Text(left), Plain::Text(right)) if operator == "+" => Ok(Plain::Text(left + &right)),
        (Plain::List(left), Plain::List(right)) if operator == "+" => Ok(Plain::List([left, right].concat())),
        _ => OVERLOAD,
    }
}

fn ints(operator: &str, left: i64, right: i64) -> Answer {
    let result = match operator {
        "/" if right == 0 => return text("division by zero"),
        "%" if right == 0 => return text("modulus by zero"),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map_or_else(|| text("integer overflow"), |number| Ok(Plain::Int(number)))
}

fn uints(operator: &str, left: u64, right: u64) -> Answer {
    let result = match operator {
        "/" if right == 0 => return text("division by zero"),
        "%" if right == 0 => return text("modulus by zero"),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map_or_else(|| text("unsigned integer overflow"), |number| Ok(Plain::Uint(number)))
}

/// Compares numbers exactly; the generator makes none that a double can't hold.
fn number(value: &Plain) -> Option<f64> {
    match value {
        Plain::Int(number) => Some(*number as f64),
        Plain::Uint(number) => Some(*number as f64),
        Plain::Double(number) => Some(*number),
        _ => None,
    }
}

fn equal(left: &Plain, right: &Plain) -> bool {
    match (left, right) {
        (Plain::Int(left), Plain::Int(right)) => left == right,
        (Plain::Uint(left), Plain::Uint(right)) => left == right,
        (Plain::Bool(left), Plain::Bool(right)) => left == right,
        (Plain::Text(left), Plain::Text(right)) => left == right,
        (Plain::List(left), Plain::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Plain::Map(left), Plain::Map(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        (Plain::Optional(left), Plain::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal(left, right),
            (left, right) => left.is_none() == right.is_none(),
        },
        _ => number(left).zip(number(right)).is_some_and(|(left, right)| left == right),
    }
}

fn order(left: &Plain, right: &Plain) -> Result<Ordering, Fault> {
    let order = match (left, right) {
        (Plain::Int(left), Plain::Int(right)) => Some(left.cmp(right)),
        (Plain::Uint(left), Plain::Uint(right)) => Some(left.cmp(right)),
        (Plain::Bool(left), Plain::Bool(right)) => Some(left.cmp(right)),
        (Plain::Text(left), Plain::Text(right)) => Some(left.cmp(right)),
        _ => match number(left).zip(number(right)) {
            Some((left, right)) => left.partial_cmp(&right),
            None => return Err(Fault::NoSuchOverload),
        },
    };
    order.ok_or_else(|| Fault::Text("NaN values cannot be ordered".to_owned()))
}

/// Returns the element or entry at a key; `None` if it is not there.
fn found(container: &Plain, key: &Plain) -> Result<Option<Plain>, Fault> {
    match (container, key) {
        (Plain::List(items), Plain::Int(at)) => Ok(usize::try_from(*at).ok().and_then(|at| items.get(at)).cloned()),
        (Plain::List(_), Plain::Text(_)) => Err(Fault::Text("unsupported index type 'string' in list".to_owned())),
        (Plain::Map(entries), Plain::Text(key)) => Ok(entries.get(key).cloned()),
        _ => Ok(None),
    }
}

fn index(container: &Plain, key: &Plain) -> Answer {
    let shown = match key {
        Plain::Int(number) => number.to_string(),
        Plain::Text(text) => text.clone(),
        other => panic!("no such keys are made: {other:?}"),
    };
    let missing = || match container {
        Plain::List(_) => Fault::Text(format!("index out of bounds: {shown}")),
        _ => Fault::NoSuchKey(shown.clone()),
    };
    found(container, key)?.ok_or_else(missing)
}

fn optional(container: &Plain, key: &Plain) -> Answer {
    Ok(Plain::Optional(found(container, key)?.map(Box::new)))
}

fn call(function: &str, arguments: &[Plain]) -> Answer {
    let characters = |text: &str| text.chars().collect::<Vec<char>>();
    let position = |all: &[char], part: &[char]| all.windows(part.len()).position(|window| window == part);
    Ok(match (function, arguments) {
        ("size", [Plain::Text(text)]) => int(text.chars().count()),
        ("size", [Plain::List(items)]) => int(items.len()),
        ("size", [Plain::Map(entries)]) => int(entries.len()),
        ("string", [Plain::Int(number)]) => Plain::Text(number.to_string()),
        ("string", [Plain::Bool(value)]) => Plain::Text(value.to_string()),
        ("double", [Plain::Int(number)]) => Plain::Double(*number as f64),
        ("uint", [Plain::Int(number)]) => match u64::try_from(*number) {
            Ok(number) => Plain::Uint(number),
            Err(_) => return text("unsigned integer overflow"),
        },
        ("optional.of", [value]) => Plain::Optional(Some(Box::new(value.clone()))),
        ("hasValue", [Plain::Optional(held)]) => Plain::Bool(held.is_some()),
        ("value", [Plain::Optional(held)]) => match held {
            Some(held) => (**held).clone(),
            None => return text("optional.none() dereference"),
        },
        ("first", [Plain::List(items)]) => Plain::Optional(items.first().cloned().map(Box::new)),
        ("last", [Plain::List(items)]) => Plain::Optional(items.last().cloned().map(Box::new)),
        ("contains", [Plain::Text(all), Plain::Text(part)]) => {
            let (all, part) = (characters(all), characters(part));
            Plain::Bool(part.is_empty() || position(&all, &part).is_some())
        }
        ("startsWith", [Plain::Text(all), Plain::Text(part)]) => Plain::Bool(all.starts_with(part.as_str())),
        ("endsWith", [Plain::Text(all), Plain::Text(part)]) => Plain::Bool(all.ends_with(part.as_str())),
        ("upperAscii", [Plain::Text(text)]) => Plain::Text(text.to_ascii_uppercase()),
        ("lowerAscii", [Plain::Text(text)]) => Plain::Text(text.to_ascii_lowercase()),
        ("charAt", [Plain::Text(all), Plain::Int(at)]) => {
            let all = characters(all);
            match usize::try_from(*at).ok().filter(|at| *at <= all.len()) {
                Some(at) => Plain::Text(all[at..].iter().take(1).collect()),
                None => return text(format!("index out of range: {at}")),
            }
        }
        ("substring", [Plain::Text(all), Plain::Int(from)]) => {
            let all = characters(all);
            match usize::try_from(*from).ok().filter(|from| *from <= all.len()) {
                Some(from) => Plain::Text(all[from..].iter().collect()),
                None => return text(format!("index out of range: {from}")),
            }
        }
        ("indexOf", [Plain::Text(all), Plain::Text(part)]) => {
            let (all, part) = (characters(all), characters(part));
            let at = if part.is_empty() { Some(0) } else { position(&all, &part) };
            at.map_or(Plain::Int(-1), int)
        }
        ("replace", [Plain::Text(all), Plain::Text(old), Plain::Text(new)]) => {
            Plain::Text(all.split(old.as_str()).collect::<Vec<_>>().join(new))
        }
        ("split", [Plain::Text(all), Plain::Text(separator)]) => {
            Plain::List(all.split(separator.as_str()).map(|part| Plain::Text(part.to_owned())).collect())
        }
        _ => return call_of_list(function, arguments),
    })
}

/// Calls a function whose first argument is a list.
fn call_of_list(function: &str, arguments: &[Plain]) -> Answer {
    Ok(match (function, arguments) {
        ("join", [Plain::List(items), Plain::Text(separator)]) => {
            let texts = items.iter().map(|item| match item {
                Plain::Text(text) => text.clone(),
                other => panic!("only texts are joined: {other:?}"),
            });
            Plain::Text(texts.collect::<Vec<_>>().join(separator))
        }
        ("indexOf", [Plain::List(items), item]) => {
            items.iter().position(|other| equal(item, other)).map_or(Plain::Int(-1), int)
        }
        ("lastIndexOf", [Plain::List(items), item]) => {
            items.iter().rposition(|other| equal(item, other)).map_or(Plain::Int(-1), int)
        }
        ("reverse", [Plain::List(items)]) => Plain::List(items.iter().rev().cloned().collect()),
        ("distinct", [Plain::List(items)]) => {
            let is_first = |at: &usize| !items[..*at].iter().any(|other| equal(other, &items[*at]));
            Plain::List((0..items.len()).filter(is_first).map(|at| items[at].clone()).collect())
        }
        ("sort", [Plain::List(items)]) => {
            let mut items = items.clone();
            items.sort_by(|left, right| order(left, right).unwrap());
            Plain::List(items)
        }
        ("isSorted", [Plain::List(items)]) => {
            Plain::Bool(items.windows(2).all(|pair| order(&pair[0], &pair[1]).unwrap().is_le()))
        }
        ("min" | "max", [Plain::List(items)]) => {
            let ordered = |left: &&Plain, right: &&Plain| order(left, right).unwrap();
            // Of equal ones, which does not matter: they look alike.
            let found = if function == "min" { items.iter().min_by(ordered) } else { items.iter().max_by(ordered) };
            return found.cloned().ok_or_else(|| Fault::Text(format!("{function} called on empty list")));
        }
        ("sum", [Plain::List(items)]) => {
            return items.iter().cloned().try_fold(Plain::Int(0), |sum, item| binary("+", sum, item));
        }
        ("slice", [Plain::List(items), Plain::Int(start), Plain::Int(end)]) => {
            let problem = |what: &str| text(format!("cannot slice({start}, {end}), {what}"));
            if *start < 0 || *end < 0 {
                return problem("negative indexes not supported");
            }
            if start > end {
                return problem("start index must be less than or equal to end index");
            }
            let range = usize::try_from(*start).unwrap()..usize::try_from(*end).unwrap();
            match items.get(range) {
                Some(part) => Plain::List(part.to_vec()),
                None => return problem(&format!("list is length {}", items.len())),
            }
        }
        ("sets.contains", [Plain::List(all), Plain::List(some)]) => {
            Plain::Bool(some.iter().all(|item| all.iter().any(|other| equal(item, other))))
        }
        ("sets.intersects", [Plain::List(one), Plain::List(other)]) => {
            Plain::Bool(one.iter().any(|item| other.iter().any(|other| equal(item, other))))
        }
        ("includes", [Plain::List(items), item]) => Plain::Bool(items.iter().any(|other| equal(other, item))),
        ("includes", [value, item]) => Plain::Bool(equal(value, item)),
        _ => return OVERLOAD,
    })
}
