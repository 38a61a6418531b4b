//! Parts of an expression whose value is known before any device is: literals, types, conversions of constants, and
//! lists and maps of them.

use std::collections::BTreeMap;

use crate::selector::check::{Checked, Reference};
use crate::selector::declarations::declarations;
use crate::selector::declarations::names::Name;
use crate::selector::functions::conversions;
use crate::selector::meter::Meter;
use crate::selector::syntax::tree::{Element, Kind, Literal, NodeId};
use crate::selector::value::map::{Key, Table};
use crate::selector::value::{List, Map, Value};

/// Constants of an expression by node.
#[derive(Debug)]
pub(super) struct Constants(Vec<Option<Value<'static>>>);

impl Constants {
    /// Finds the constants of an expression. The error is that of a conversion, which is the expression's.
    pub(super) fn find(checked: &Checked<'_>) -> Result<Self, String> {
        let mut constants = Self(Vec::with_capacity(checked.tree.len()));
        let mut meter = Meter::new(u64::MAX, None);
        // Parts are made before what they are parts of.
        for node in checked.tree.ids() {
            let value = constants.value(checked, node, &mut meter)?;
            constants.0.push(value);
        }
        Ok(constants)
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Value<'static>> {
        self.0.get(node.index())?.as_ref()
    }

    fn value(
        &self,
        checked: &Checked<'_>,
        node: NodeId,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value<'static>>, String> {
        match checked.reference(node) {
            Reference::Name(Name::Type(name)) if !matches!(checked.tree.kind(node), Kind::Message { .. }) => {
                return Ok(Some(Value::Type(name)));
            }
            Reference::Name(Name::NullValue) => return Ok(Some(Value::Int(0))),
            _ => {}
        }
        match checked.tree.kind(node) {
            Kind::Literal(literal) => Ok(Some(literal_value(literal))),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Call { function, target: None, arguments } if conversions::NAMES.contains(function) => {
                let [argument] = arguments.as_slice() else { return Ok(None) };
                let Some(value) = self.get(*argument) else { return Ok(None) };
                converted(function, value, meter).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn list(&self, elements: &[Element]) -> Result<Option<Value<'static>>, String> {
        let values = elements.iter().map(|element| self.get(element.value).filter(|_| !element.optional).cloned());
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(None) };
        List::new(values).map(|list| Some(Value::List(list))).map_err(|fault| fault.to_string())
    }

    fn map(&self, entries: &[Element]) -> Result<Option<Value<'static>>, String> {
        let mut table = BTreeMap::new();
        for entry in entries {
            let (key, value) = (entry.key.and_then(|key| self.get(key)), self.get(entry.value));
            let (Some(key), Some(value), false) = (key, value, entry.optional) else { return Ok(None) };
            table.insert(Key::new(key.clone()).map_err(|fault| fault.to_string())?, value.clone());
        }
        Table::new(table).map(|table| Some(Value::Map(Map::Table(table)))).map_err(|fault| fault.to_string())
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

/// Converts a constant.
fn converted(name: &str, value: &Value<'static>, meter: &mut Meter<'_>) -> Result<Value<'static>, String> {
    let arguments = [value.clone()];
    let function = declarations().function(name).ok_or("no such function")?;
    let answer = (function.run)(meter, &arguments).map_err(|fault| function.worded(fault, &arguments));
    answer.map_err(|fault| fault.to_string())
}
