//! Hostile documents, drawn from a seed: objects in which one place is huge, deep, repeated or out of range, and YAML that
//! repeats itself by aliases.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// Largest size of a drawn part, in bytes or so.
const MAX_LEN: usize = 100_000;

/// Source of numbers, the same for a seed (`SplitMix64`).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Returns a size, small and large ones equally often.
    fn size(&mut self) -> usize {
        let limit = MAX_LEN >> self.below(14);
        1 + self.below(limit)
    }

    /// Makes one to three places of a document hostile.
    pub(crate) fn spoil(&mut self, document: &mut Value) {
        for _ in 0..=self.below(3) {
            self.spoil_place(document);
        }
    }

    fn spoil_place(&mut self, place: &mut Value) {
        let stays = self.below(8) == 0;
        match place {
            Value::Object(fields) if !stays && !fields.is_empty() => {
                let index = self.below(fields.len());
                self.spoil_place(fields.values_mut().nth(index).unwrap());
            }
            Value::Array(items) if !stays && !items.is_empty() => {
                let index = self.below(items.len());
                self.spoil_place(&mut items[index]);
            }
            _ => *place = self.hostile(place.take()),
        }
    }

    fn hostile(&mut self, old: Value) -> Value {
        let size = self.size();
        match self.below(11) {
            0 => Value::from("x".repeat(size)),
            1 => Value::from("\u{1b}[2J\n\u{0}\u{9b}é".repeat(size / 10 + 1)),
            2 => {
                let leaf = if self.below(2) == 0 { json!([]) } else { json!({}) };
                (0..size.min(60)).fold(leaf, |inner, _| json!({"a": [inner]}))
            }
            3 => Value::from(vec![json!(1); size]),
            4 => (0..size / 8).map(|index| (format!("k{index}"), json!(index))).collect::<Map<_, _>>().into(),
            5 | 6 => self.repeated(old, size),
            7 => self
                .pick(&[json!(i64::MAX), json!(i64::MIN), json!(u64::MAX), json!(-1), json!(1e300), json!(0)])
                .clone(),
            8 => {
                let texts =
                    ["", "-1", "1e999999", "9223372036854775808", "2026-13-45T99:00:00Z", "../../x", "*", "a/b/c/d"];
                Value::from(*self.pick(&texts))
            }
            9 => Value::from(self.pick(&["a/", "../", "\\", "(", "[", "x&&", "1,", "0-9,", "1."]).repeat(size)),
            _ => self.pick(&[json!(null), json!([]), json!({}), json!(true), json!([null]), json!([[]])]).clone(),
        }
    }

    /// Returns a list of many copies of a value, some of them with another name.
    fn repeated(&mut self, value: Value, size: usize) -> Value {
        let value = match value {
            Value::Array(items) if !items.is_empty() => items[self.below(items.len())].clone(),
            value => value,
        };
        let count = (size / value.to_string().len().max(1)).max(2);
        let is_named = self.below(2) == 0;
        let copy = |index: usize| {
            let mut copy = value.clone();
            if let Some(name) = copy.get_mut("name").filter(|_| is_named) {
                *name = Value::from(format!("n{index}"));
            }
            copy
        };
        Value::Array((0..count).map(copy).collect())
    }

    /// Returns a document whose aliases repeat its parts.
    pub(crate) fn aliased(&mut self) -> String {
        let kind = *self.pick(&[
            "Node",
            "Pod",
            "ResourceSlice",
            "ResourceClaim",
            "DeviceClass",
            "KubeletConfiguration",
            "List",
        ]);
        let field = *self.pick(&["x", "items", "spec", "status", "metadata"]);
        let (leaf, width, depth) = (self.size(), 1 + self.below(12), 1 + self.below(9));
        let mut text = format!("kind: {kind}\nmetadata: {{name: a}}\n{field}: &a0 \"{}\"\n", "x".repeat(leaf));
        for level in 1..=depth {
            let below = vec![format!("*a{}", level - 1); width].join(",");
            writeln!(text, "y{level}: &a{level} [{below}]").unwrap();
        }
        text
    }
}
