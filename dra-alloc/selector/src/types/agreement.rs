//! Agreement of types: may a value of one be used as the other?

use super::{Type, TypeId, Types};

impl Types {
    /// Returns true if one type agrees with another, and remembers what that says about variables. If not, nothing is
    /// remembered.
    pub(crate) fn agree(&mut self, one: TypeId, other: TypeId) -> bool {
        self.agree_all(&[one], &[other])
    }

    /// Returns true if all types agree with those at the same place.
    pub(crate) fn agree_all(&mut self, ones: &[TypeId], others: &[TypeId]) -> bool {
        let before = self.trail.len();
        let agree =
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| self.try_agree(*one, *other));
        if !agree {
            self.undo(before);
        }
        agree
    }

    fn undo(&mut self, before: usize) {
        for (variable, former) in self.trail.drain(before..).rev() {
            if let Some(slot) = self.substitutes.get_mut(variable as usize) {
                *slot = former;
            }
        }
    }

    fn set(&mut self, variable: u32, substitute: TypeId) {
        if let Some(slot) = self.substitutes.get_mut(variable as usize) {
            self.trail.push((variable, *slot));
            *slot = Some(substitute);
        }
    }

    fn try_agree(&mut self, one: TypeId, other: TypeId) -> bool {
        if one == other {
            return true;
        }
        let (left, right) = (self.get(one), self.get(other));
        if let Type::Variable(variable) = right {
            match self.bind(one, variable) {
                Bound::Yes => return true,
                Bound::No => return false,
                Bound::Contained => {}
            }
        }
        if let Type::Variable(variable) = left {
            return matches!(self.bind(other, variable), Bound::Yes);
        }
        match (left, right) {
            _ if left.is_open() || right.is_open() => true,
            (Type::Null, other) | (other, Type::Null) => other.may_be_null(),
            (Type::TypeOf(_), Type::TypeOf(_)) => true,
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.try_agree(one, other)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.try_agree(key, other_key) && self.try_agree(value, other_value)
            }
            (Type::Wrapper(inner), other) | (other, Type::Wrapper(inner)) => other.name() == inner,
            _ => false,
        }
    }

    /// Lets a type stand for a variable, if it agrees with what stands for it.
    fn bind(&mut self, one: TypeId, variable: u32) -> Bound {
        if let Some(known) = self.substitute(variable) {
            if known == one {
                return Bound::Yes;
            }
            if !self.try_agree(one, known) {
                return Bound::No;
            }
            let general = self.more_general(one, known);
            if !self.contains(general, variable) {
                self.set(variable, general);
            }
            return Bound::Yes;
        }
        if self.contains(one, variable) {
            return Bound::Contained;
        }
        self.set(variable, one);
        Bound::Yes
    }

    fn contains(&self, id: TypeId, variable: u32) -> bool {
        if !self.stored(id).has_variables {
            return false;
        }
        match self.get(id) {
            Type::Variable(other) if other == variable => true,
            Type::Variable(other) => self.substitute(other).is_some_and(|known| self.contains(known, variable)),
            shape => shape.parameters().into_iter().flatten().any(|part| self.contains(part, variable)),
        }
    }

    /// Returns the more general of two types that agree.
    pub(crate) fn more_general(&self, one: TypeId, other: TypeId) -> TypeId {
        if self.is_more_general(one, other) { one } else { other }
    }

    fn is_more_general(&self, one: TypeId, other: TypeId) -> bool {
        if one == other {
            return true;
        }
        match (self.get(one), self.get(other)) {
            (Type::Dyn | Type::Any | Type::Variable(_), _) => true,
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.is_more_general(one, other)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.is_more_general(key, other_key) && self.is_more_general(value, other_value)
            }
            (Type::TypeOf(_), Type::TypeOf(_)) => true,
            _ => false,
        }
    }
}

enum Bound {
    Yes,
    No,
    /// The variable is a part of the type that was to stand for it.
    Contained,
}

impl Type {
    /// Returns false for scalars, lists, maps and types.
    const fn may_be_null(self) -> bool {
        let is_scalar = matches!(self, Self::Bool | Self::Int | Self::Uint | Self::Double | Self::String | Self::Bytes);
        !is_scalar && !matches!(self, Self::List(_) | Self::Map(..) | Self::TypeOf(_))
    }
}
