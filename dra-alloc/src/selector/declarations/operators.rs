//! Operators and conversions.

use super::Cost::{
    AddList, AddText, BytesOfString, Compare, Control, Dyn, Equal, InList, Index, NotEqual, One, StringOfBytes,
};
use super::{Cost, Row};

/// Overloads of the operators that order values.
const ORDER: &[(&str, Cost)] = &[
    ("(bool, bool) -> bool", One),
    ("(int, int) -> bool", One),
    ("(int, double) -> bool", One),
    ("(int, uint) -> bool", One),
    ("(uint, uint) -> bool", One),
    ("(uint, double) -> bool", One),
    ("(uint, int) -> bool", One),
    ("(double, double) -> bool", One),
    ("(double, int) -> bool", One),
    ("(double, uint) -> bool", One),
    ("(string, string) -> bool", Compare),
    ("(bytes, bytes) -> bool", Compare),
    ("(timestamp, timestamp) -> bool", One),
    ("(duration, duration) -> bool", One),
];

pub(super) const TABLE: &[Row] = &[
    (
        "_+_",
        &[
            ("(bytes, bytes) -> bytes", AddText),
            ("(double, double) -> double", One),
            ("(duration, duration) -> duration", One),
            ("(duration, timestamp) -> timestamp", One),
            ("(timestamp, duration) -> timestamp", One),
            ("(int, int) -> int", One),
            ("(list(A), list(A)) -> list(A)", AddList),
            ("(string, string) -> string", AddText),
            ("(uint, uint) -> uint", One),
        ],
    ),
    (
        "_-_",
        &[
            ("(double, double) -> double", One),
            ("(duration, duration) -> duration", One),
            ("(int, int) -> int", One),
            ("(timestamp, duration) -> timestamp", One),
            ("(timestamp, timestamp) -> duration", One),
            ("(uint, uint) -> uint", One),
        ],
    ),
    ("_*_", &[("(double, double) -> double", One), ("(int, int) -> int", One), ("(uint, uint) -> uint", One)]),
    ("_/_", &[("(double, double) -> double", One), ("(int, int) -> int", One), ("(uint, uint) -> uint", One)]),
    ("_%_", &[("(int, int) -> int", One), ("(uint, uint) -> uint", One)]),
    ("-_", &[("(double) -> double", One), ("(int) -> int", One)]),
    ("!_", &[("(bool) -> bool", One)]),
    ("_&&_", &[("(bool, bool) -> bool", Control)]),
    ("_||_", &[("(bool, bool) -> bool", Control)]),
    ("_?_:_", &[("(bool, A, A) -> A", Control)]),
    ("_==_", &[("(A, A) -> bool", Equal)]),
    ("_!=_", &[("(A, A) -> bool", NotEqual)]),
    ("_<_", ORDER),
    ("_<=_", ORDER),
    ("_>_", ORDER),
    ("_>=_", ORDER),
    ("@in", &[("(A, list(A)) -> bool", InList), ("(A, map(A, B)) -> bool", One)]),
    (
        "_[_]",
        &[
            ("(list(A), int) -> A", Index),
            ("(map(A, B), A) -> B", Index),
            ("(optional(list(A)), int) -> optional(A)", Index),
            ("(optional(map(A, B)), A) -> optional(B)", Index),
        ],
    ),
    (
        "_[?_]",
        &[
            ("(list(A), int) -> optional(A)", One),
            ("(optional(list(A)), int) -> optional(A)", One),
            ("(map(A, B), A) -> optional(B)", One),
            ("(optional(map(A, B)), A) -> optional(B)", One),
        ],
    ),
    ("@not_strictly_false", &[("(bool) -> bool", One)]),
    ("bool", &[("(bool) -> bool", One), ("(string) -> bool", One)]),
    ("bytes", &[("(bytes) -> bytes", One), ("(string) -> bytes", BytesOfString)]),
    (
        "double",
        &[
            ("(double) -> double", One),
            ("(int) -> double", One),
            ("(string) -> double", One),
            ("(uint) -> double", One),
        ],
    ),
    ("duration", &[("(duration) -> duration", One), ("(int) -> duration", One), ("(string) -> duration", One)]),
    ("dyn", &[("(A) -> dyn", Dyn)]),
    (
        "int",
        &[
            ("(int) -> int", One),
            ("(double) -> int", One),
            ("(duration) -> int", One),
            ("(string) -> int", One),
            ("(timestamp) -> int", One),
            ("(uint) -> int", One),
        ],
    ),
    (
        "string",
        &[
            ("(string) -> string", One),
            ("(bool) -> string", One),
            ("(bytes) -> string", StringOfBytes),
            ("(double) -> string", One),
            ("(duration) -> string", One),
            ("(int) -> string", One),
            ("(timestamp) -> string", One),
            ("(uint) -> string", One),
            ("(IP) -> string", One),
            ("(CIDR) -> string", One),
        ],
    ),
    ("timestamp", &[("(timestamp) -> timestamp", One), ("(int) -> timestamp", One), ("(string) -> timestamp", One)]),
    ("type", &[("(A) -> type(A)", One)]),
    ("uint", &[("(uint) -> uint", One), ("(double) -> uint", One), ("(int) -> uint", One), ("(string) -> uint", One)]),
];
