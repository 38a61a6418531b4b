//! Functions of the libraries.

use super::Cost::{
    Affix, Aggregate, Canonical, Check, Contains, ContainsCidr, ContainsCidrText, ContainsIp, ContainsIpText, Copy,
    Distinct, Fallback, Find, FindAll, Flatten, Format, Includes, IndexOf, Join, Matches, One, Parse, Quote, Range,
    Replace, Reverse, Selector, SetEquivalent, SetPair, Slice, Sort, SortBy, Split, Validate,
};
use super::{Cost, Row};

/// Overloads of functions that read a part of a time, in UTC or in a zone.
const DATE: &[(&str, Cost)] = &[("timestamp.() -> int", One), ("timestamp.(string) -> int", One)];
/// The same of functions that read a duration, too.
const CLOCK: &[(&str, Cost)] =
    &[("timestamp.() -> int", One), ("timestamp.(string) -> int", One), ("duration.() -> int", One)];
const IS_SORTED: &[(&str, Cost)] = &[
    ("list(int).() -> bool", Aggregate),
    ("list(uint).() -> bool", Aggregate),
    ("list(double).() -> bool", Aggregate),
    ("list(bool).() -> bool", Aggregate),
    ("list(duration).() -> bool", Aggregate),
    ("list(timestamp).() -> bool", Aggregate),
    ("list(string).() -> bool", Aggregate),
    ("list(bytes).() -> bool", Aggregate),
];
const EXTREME: &[(&str, Cost)] = &[
    ("list(int).() -> int", Aggregate),
    ("list(uint).() -> uint", Aggregate),
    ("list(double).() -> double", Aggregate),
    ("list(bool).() -> bool", Aggregate),
    ("list(duration).() -> duration", Aggregate),
    ("list(timestamp).() -> timestamp", Aggregate),
    ("list(string).() -> string", Aggregate),
    ("list(bytes).() -> bytes", Aggregate),
];
const INDEX_OF: &[(&str, Cost)] =
    &[("list(A).(A) -> int", IndexOf), ("string.(string) -> int", IndexOf), ("string.(string, int) -> int", IndexOf)];
const ORDERED: &[(&str, Cost)] = &[("Quantity.(Quantity) -> bool", One), ("Semver.(Semver) -> bool", One)];
const ARITHMETIC: &[(&str, Cost)] = &[("Quantity.(Quantity) -> Quantity", One), ("Quantity.(int) -> Quantity", One)];
const OF_STRING: &[(&str, Cost)] = &[("string.() -> string", Copy)];
const OF_IP: &[(&str, Cost)] = &[("IP.() -> bool", One)];
const OF_URL: &[(&str, Cost)] = &[("URL.() -> string", One)];
const OF_VERSION: &[(&str, Cost)] = &[("Semver.() -> int", One)];
const SETS: &[(&str, Cost)] = &[("(list(A), list(A)) -> bool", SetPair)];
const NAMED_FORMAT: &[(&str, Cost)] = &[("() -> Format", One)];
const END: &[(&str, Cost)] = &[("list(A).() -> optional(A)", One)];
const SELECTOR: &[(&str, Cost)] = &[("ResourceCheck.(string) -> ResourceCheck", Selector)];
const RESOURCE: &[(&str, Cost)] = &[("ResourceCheck.(string) -> ResourceCheck", One)];

pub(super) const TABLE: &[Row] = &[
    // Standard library.
    (
        "size",
        &[
            ("(bytes) -> int", One),
            ("bytes.() -> int", One),
            ("(list(A)) -> int", One),
            ("list(A).() -> int", One),
            ("(map(A, B)) -> int", One),
            ("map(A, B).() -> int", One),
            ("(string) -> int", One),
            ("string.() -> int", One),
        ],
    ),
    ("contains", &[("string.(string) -> bool", Contains)]),
    ("startsWith", &[("string.(string) -> bool", Affix)]),
    ("endsWith", &[("string.(string) -> bool", Affix)]),
    ("matches", &[("(string, string) -> bool", One), ("string.(string) -> bool", Matches)]),
    ("getFullYear", DATE),
    ("getMonth", DATE),
    ("getDayOfYear", DATE),
    ("getDayOfMonth", DATE),
    ("getDate", DATE),
    ("getDayOfWeek", DATE),
    ("getHours", CLOCK),
    ("getMinutes", CLOCK),
    ("getSeconds", CLOCK),
    ("getMilliseconds", CLOCK),
    // Strings.
    ("charAt", &[("string.(int) -> string", One)]),
    ("indexOf", INDEX_OF),
    ("lastIndexOf", INDEX_OF),
    ("lowerAscii", OF_STRING),
    ("upperAscii", OF_STRING),
    ("trim", OF_STRING),
    ("replace", &[("string.(string, string) -> string", Replace), ("string.(string, string, int) -> string", Replace)]),
    ("split", &[("string.(string) -> list(string)", Split), ("string.(string, int) -> list(string)", Split)]),
    ("substring", &[("string.(int) -> string", Copy), ("string.(int, int) -> string", Copy)]),
    ("join", &[("list(string).() -> string", Join), ("list(string).(string) -> string", Join)]),
    ("strings.quote", &[("(string) -> string", Quote)]),
    ("format", &[("string.(list(dyn)) -> string", Format)]),
    ("find", &[("string.(string) -> string", Find)]),
    ("findAll", &[("string.(string) -> list(string)", FindAll), ("string.(string, int) -> list(string)", FindAll)]),
    // Lists.
    ("isSorted", IS_SORTED),
    ("min", EXTREME),
    ("max", EXTREME),
    (
        "sum",
        &[
            ("list(int).() -> int", Aggregate),
            ("list(uint).() -> uint", Aggregate),
            ("list(double).() -> double", Aggregate),
            ("list(duration).() -> duration", Aggregate),
        ],
    ),
    (
        "sort",
        &[
            ("list(int).() -> list(int)", Sort),
            ("list(uint).() -> list(uint)", Sort),
            ("list(double).() -> list(double)", Sort),
            ("list(bool).() -> list(bool)", Sort),
            ("list(duration).() -> list(duration)", Sort),
            ("list(timestamp).() -> list(timestamp)", Sort),
            ("list(string).() -> list(string)", Sort),
            ("list(bytes).() -> list(bytes)", Sort),
        ],
    ),
    (
        "@sortByAssociatedKeys",
        &[
            ("list(A).(list(int)) -> list(A)", SortBy),
            ("list(A).(list(uint)) -> list(A)", SortBy),
            ("list(A).(list(double)) -> list(A)", SortBy),
            ("list(A).(list(bool)) -> list(A)", SortBy),
            ("list(A).(list(duration)) -> list(A)", SortBy),
            ("list(A).(list(timestamp)) -> list(A)", SortBy),
            ("list(A).(list(string)) -> list(A)", SortBy),
            ("list(A).(list(bytes)) -> list(A)", SortBy),
        ],
    ),
    ("distinct", &[("list(A).() -> list(A)", Distinct)]),
    ("reverse", &[("list(A).() -> list(A)", Reverse)]),
    ("slice", &[("list(A).(int, int) -> list(A)", Slice)]),
    ("flatten", &[("list(list(A)).() -> list(A)", Flatten), ("list(dyn).(int) -> list(dyn)", Flatten)]),
    ("lists.range", &[("(int) -> list(int)", Range)]),
    ("first", END),
    ("last", END),
    ("sets.contains", SETS),
    ("sets.intersects", SETS),
    ("sets.equivalent", &[("(list(A), list(A)) -> bool", SetEquivalent)]),
    ("includes", &[("dyn.(dyn) -> bool", Includes)]),
    ("cel.@mapInsert", &[("(map(A, B), A, B) -> map(A, B)", One), ("(map(A, B), map(A, B)) -> map(A, B)", One)]),
    // Quantities and versions.
    ("quantity", &[("(string) -> Quantity", Parse)]),
    ("isQuantity", &[("(string) -> bool", Parse)]),
    ("sign", &[("(Quantity) -> int", One)]),
    ("isGreaterThan", ORDERED),
    ("isLessThan", ORDERED),
    ("compareTo", &[("Quantity.(Quantity) -> int", One), ("Semver.(Semver) -> int", One)]),
    ("asApproximateFloat", &[("Quantity.() -> double", One)]),
    ("asInteger", &[("Quantity.() -> int", One)]),
    ("isInteger", &[("Quantity.() -> bool", One)]),
    ("add", ARITHMETIC),
    ("sub", ARITHMETIC),
    ("semver", &[("(string) -> Semver", Parse), ("(string, bool) -> Semver", Parse)]),
    ("isSemver", &[("(string) -> bool", Parse), ("(string, bool) -> bool", Parse)]),
    ("major", OF_VERSION),
    ("minor", OF_VERSION),
    ("patch", OF_VERSION),
    // Addresses and URLs.
    ("ip", &[("(string) -> IP", Parse), ("CIDR.() -> IP", One)]),
    ("isIP", &[("(string) -> bool", Parse)]),
    ("ip.isCanonical", &[("(string) -> bool", Canonical)]),
    ("family", &[("IP.() -> int", One)]),
    ("isUnspecified", OF_IP),
    ("isLoopback", OF_IP),
    ("isLinkLocalMulticast", OF_IP),
    ("isLinkLocalUnicast", OF_IP),
    ("isGlobalUnicast", OF_IP),
    ("cidr", &[("(string) -> CIDR", Parse)]),
    ("isCIDR", &[("(string) -> bool", Parse)]),
    ("containsIP", &[("CIDR.(string) -> bool", ContainsIpText), ("CIDR.(IP) -> bool", ContainsIp)]),
    ("containsCIDR", &[("CIDR.(string) -> bool", ContainsCidrText), ("CIDR.(CIDR) -> bool", ContainsCidr)]),
    ("prefixLength", &[("CIDR.() -> int", One)]),
    ("masked", &[("CIDR.() -> CIDR", One)]),
    ("url", &[("(string) -> URL", Copy)]),
    ("isURL", &[("(string) -> bool", One)]),
    ("getScheme", OF_URL),
    ("getHost", OF_URL),
    ("getHostname", OF_URL),
    ("getPort", OF_URL),
    ("getEscapedPath", OF_URL),
    ("getQuery", &[("URL.() -> map(string, list(string))", One)]),
    // Formats.
    ("format.named", &[("(string) -> optional(Format)", One)]),
    ("format.dns1123Label", NAMED_FORMAT),
    ("format.dns1123Subdomain", NAMED_FORMAT),
    ("format.dns1035Label", NAMED_FORMAT),
    ("format.qualifiedName", NAMED_FORMAT),
    ("format.dns1123LabelPrefix", NAMED_FORMAT),
    ("format.dns1123SubdomainPrefix", NAMED_FORMAT),
    ("format.dns1035LabelPrefix", NAMED_FORMAT),
    ("format.labelValue", NAMED_FORMAT),
    ("format.uri", NAMED_FORMAT),
    ("format.uuid", NAMED_FORMAT),
    ("format.byte", NAMED_FORMAT),
    ("format.date", NAMED_FORMAT),
    ("format.datetime", NAMED_FORMAT),
    ("validate", &[("Format.(string) -> optional(list(string))", Validate)]),
    // Optional values.
    ("optional.of", &[("(A) -> optional(A)", One)]),
    ("optional.ofNonZeroValue", &[("(A) -> optional(A)", One)]),
    ("optional.none", &[("() -> optional(A)", One)]),
    ("optional.unwrap", &[("(list(optional(A))) -> list(A)", One)]),
    ("unwrapOpt", &[("list(optional(A)).() -> list(A)", One)]),
    ("hasValue", &[("optional(A).() -> bool", One)]),
    ("value", &[("optional(A).() -> A", One)]),
    ("or", &[("optional(A).(optional(A)) -> optional(A)", Fallback)]),
    ("orValue", &[("optional(A).(A) -> A", Fallback)]),
    // The authorizer's functions, of which no expression has a value to call them on.
    ("path", &[("Authorizer.(string) -> PathCheck", One)]),
    ("group", &[("Authorizer.(string) -> GroupCheck", One)]),
    ("serviceAccount", &[("Authorizer.(string, string) -> Authorizer", One)]),
    ("resource", &[("GroupCheck.(string) -> ResourceCheck", One)]),
    ("subresource", RESOURCE),
    ("namespace", RESOURCE),
    ("name", RESOURCE),
    ("fieldSelector", SELECTOR),
    ("labelSelector", SELECTOR),
    ("check", &[("PathCheck.(string) -> Decision", Check), ("ResourceCheck.(string) -> Decision", Check)]),
    ("allowed", &[("Decision.() -> bool", One)]),
    ("reason", &[("Decision.() -> string", One)]),
    ("errored", &[("Decision.() -> bool", One)]),
    ("error", &[("Decision.() -> string", One)]),
];
