//! Parts of an expression whose value is known before any device is: literals, types, conversions of constants, and
//! lists and maps of them.

use std::collections::BTreeMap;

use crate::check::{Checked, Reference};
use crate::declarations::declarations;
use crate::declarations::names::Name;
use crate::fault::Fault;
use crate::functions::conversions;
use crate::meter::{Bound, Meter};
use crate::syntax::tree::{Element, Kind, Literal, NodeId};
use crate::value::{Key, List, Map, Table, Value};

/// Value of a part of an expression, if it is a constant.
type Constant = Result<Option<Value<'static>>, Box<Fault>>;

/// Constants of an expression by node.
#[derive(Debug)]
pub(super) struct Constants(Vec<Option<Value<'static>>>);

impl Constants {
    /// Finds the constants of an expression. The error is that of a conversion, which is the expression's.
    pub(super) fn find(checked: &Checked<'_>) -> Result<Self, String> {
        let mut constants = Self(Vec::with_capacity(checked.tree.len()));
        let mut meter = Meter::new(u64::MAX, Bound::NONE);
        // Parts are made before what they are parts of.
        for node in checked.tree.ids() {
            let value = constants.value(checked, node, &mut meter).map_err(|fault| fault.to_string())?;
            constants.0.push(value);
        }
        Ok(constants)
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Value<'static>> {
        self.0.get(node.index())?.as_ref()
    }

    fn value(&self, checked: &Checked<'_>, node: NodeId, meter: &mut Meter<'_>) -> Constant {
        match (checked.tree.kind(node), checked.reference(node)) {
            (Kind::Message { .. }, _) => Ok(None),
            (_, Reference::Name(Name::Type(name))) => Ok(Some(Value::Type(name))),
            (_, Reference::Name(Name::NullValue)) => Ok(Some(Value::Int(0))),
            (Kind::Literal(literal), _) => Ok(Some(literal_value(literal))),
            (Kind::List(elements), _) => self.list(elements),
            (Kind::Map(entries), _) => self.map(entries),
            (Kind::Call { function, target: None, arguments }, _) if conversions::NAMES.contains(function) => {
                let value = arguments.first().and_then(|argument| self.get(*argument));
                let (Some(function), Some(value)) = (declarations().function(function), value) else { return Ok(None) };
                function.call(meter, std::slice::from_ref(value)).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn list(&self, elements: &[Element]) -> Constant {
        let values = elements.iter().map(|element| self.get(element.value).filter(|_| !element.optional).cloned());
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(None) };
        List::new(values).map(|list| Some(Value::List(list)))
    }

    fn map(&self, entries: &[Element]) -> Constant {
        let mut table = BTreeMap::new();
        for entry in entries {
            let (key, value) = (entry.key.and_then(|key| self.get(key)), self.get(entry.value));
            let (Some(key), Some(value), false) = (key, value, entry.optional) else { return Ok(None) };
            table.insert(Key::new(key.clone())?, value.clone());
        }
        Table::new(table).map(|table| Some(Value::Map(Map::Table(table))))
    }
}

fn literal_value(literal: &Literal<'_>) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::owned(&**text),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}
