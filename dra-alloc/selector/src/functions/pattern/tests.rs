use ::regex::{Regex, RegexBuilder};
use proptest::prelude::*;

use super::{Translated, classes, translate};

#[test]
fn the_classes_of_go() {
    let rows = [
        (r"\d+", "[0-9]+"),
        (r"[\w.-]", r"[0-9A-Za-z_\.\-]"),
        (r"[^\D]", "[^[^0-9]]"),
        (r"[]a]", r"[\]a]"),
        (r"[[a]", r"[\[a]"),
        (r"[[:]", r"[\[:]"),
        (r"[[:alpha:]&&]", r"[[:alpha:]\&\&]"),
        (r"[a-f\x41-\x{46}]", "[a-fA-F]"),
        (r"\bx", r"(?-u:\b)x"),
        (r"\p{Greek}\PN", r"\p{Greek}\P{N}"),
        (r"\p{^Greek}[\P{^L}]", r"\P{Greek}[\p{L}]"),
        (r"(?)a", "a"),
        (r"(?:a)", "(?:a)"),
        (r"(?ii)a(?i-i)b(?i-is:c)", "(?i)a(?-i)b(?-is:c)"),
        (r"(a{10}){100}a{0}", "(?:a{10}){100}a{0}"),
        (r"(?i)[a-cX\d]", "(?i)[[a-c][X][0-9]]"),
    ];
    for (go, ours) in rows {
        assert_eq!(translate(go).map(|translated| translated.pattern).as_deref(), Ok(ours), "{go}");
    }
}

#[test]
fn the_same_texts_match_as_in_go() {
    let rows = [
        (r"a\<b", "a<b", true),
        (r"\<b", "b", false),
        (r"^a{b}$", "a{b}", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{01}$", "a{01}", true),
        (r"^a{2,}$", "aaa", true),
        (r"^a{1,2}?$", "aa", true),
        (r"^\Qa.b\E+$", "a.bbb", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"^\Q[", "[", true),
        (r"^\_\-\ \/$", "_- /", true),
        (r"^\101\x42\x{43}\0$", "ABC\0", true),
        (r"^\t[\n]$", "\t\n", true),
        (r"^(?i:A)(?P<n>b)(?<m>c)$", "abc", true),
        (r"(?s)^.$", "\n", true),
        (r"^\d$", "٣", false),
        (r"^[a\-z]+$", "a-z", true),
        (r"^[--/]$", ".", true),
        (r"^[\d-z]+$", "5-z", true),
        (r"^[^]a]$", "]", false),
        (r"^[a&&b~~c]+$", "&~abc", true),
        (r"^(a|b)*$", "abba", true),
        (r"^}]$", "}]", true),
    ];
    for (pattern, text, matches) in rows {
        let regex =
            Regex::new(&translate(pattern).unwrap().pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert_eq!(regex.is_match(text), matches, "{pattern}");
    }
}

#[test]
fn what_go_refuses() {
    for pattern in [
        "[[:::alpha:]]",
        "a**",
        "a+*",
        "a{2}{3}",
        "a*??",
        "(?x)a",
        "(?=a)",
        "(?R)a",
        r"\u0061",
        r"\U00000061",
        r"\E",
        r"\C",
        r"\Z",
        r"\1",
        r"\8",
        r"\é",
        r"\",
        "[a",
        r"[\",
        "[",
        r"\x4",
        r"\xg0",
        r"\x{110000}",
        "a{1001}",
        "(a{1000}){2}",
        "((a{500}b){3}|a+)",
        "(?:(?i)a{101}){10}",
        "a+(?)?",
        "a(?i)*",
        "(?-)a",
        "(?i--s)a",
        "a{3,2}",
        "(?P<a",
        r"[a-\d]",
        "[[:nope:]]",
        r"\p{sc=Greek}",
        r"\p{Nope}",
        r"\p{Gree.k}",
        r"\p{Alphabetic}",
        r"\p{^^L}",
        r"\p{L",
        r"\p",
        "*",
        "a|*",
        "(*)",
        "(",
        ")",
        "[z-a]",
        "(?P<n!>a)",
    ] {
        assert!(translate(pattern).is_err(), "{pattern}");
    }
}

/// Returns the smallest limit with which the crate compiles a pattern, in bytes, up to a few hundred.
fn needed(pattern: &str) -> usize {
    let is_enough = |limit| RegexBuilder::new(pattern).size_limit(limit).build().is_ok();
    let (mut less, mut enough) = (0, 64 << 10);
    while !is_enough(enough) {
        assert!(enough < 64 << 20, "{pattern} does not compile");
        (less, enough) = (enough, 2 * enough);
    }
    while enough - less > 256 {
        let middle = usize::midpoint(less, enough);
        *(if is_enough(middle) { &mut enough } else { &mut less }) = middle;
    }
    enough
}

/// Compares the estimated size of a pattern with what the crate needs.
fn sizes(pattern: &str) -> (usize, usize) {
    let Translated { pattern: translated, size } =
        translate(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    (size, needed(&translated))
}

#[test]
fn every_named_class_needs_at_most_its_size() {
    for name in classes::names() {
        let size = classes::named(name).unwrap().size;
        for pattern in ["\\p{_}", "\\P{_}", "(?i)\\p{_}", "(?i)\\P{_}"] {
            let compiled = RegexBuilder::new(&pattern.replace('_', name)).size_limit(size).build();
            assert!(compiled.is_ok(), "{name}: {size}");
        }
    }
}

#[test]
fn sizes_are_near_what_patterns_need() {
    // Pattern, and the largest estimate in bytes.
    let rows = [
        ("^[a-z0-9.-]+$", 8 << 10),
        ("(?i)a100.*", 16 << 10),
        (r"^(\d{1,3}\.){3}\d{1,3}$", 16 << 10),
        ("[[:alpha:]]{1,63}", 32 << 10),
        (r"^\p{L}+$", 64 << 10),
        (r"(?i)^[\p{L}\d_-]+$", 128 << 10),
        (r"\S{100}", 192 << 10),
        (r"\pL{24}", 1_100 << 10),
        (r"(?i)\pL{24}", 1_200 << 10),
        (r"\PL{24}", 1_100 << 10),
        (r"(\pL|\pN){16}", 1_200 << 10),
        (".{800}", 1_100 << 10),
        (r"\p{Han}{200}", 1_100 << 10),
    ];
    for (pattern, most) in rows {
        let (size, needed) = sizes(pattern);
        assert!((needed..=most).contains(&size), "{pattern}: {size}, {needed} are needed");
    }
}

/// Returns parts of patterns, of which random ones are made.
fn parts() -> impl Strategy<Value = String> {
    let character = prop_oneof![Just('k'), Just('z'), Just('-'), Just('é'), Just('ſ'), any::<char>()];
    let escaped = |character: char| format!("\\x{{{:x}}}", u32::from(character));
    let named = prop::sample::select(classes::names().collect::<Vec<_>>());
    let named = (named, any::<bool>()).prop_map(|(name, not)| format!("\\{}{{{name}}}", if not { 'P' } else { 'p' }));
    let range = (any::<char>(), any::<char>());
    let range = range.prop_map(move |(a, b)| format!("{}-{}", escaped(a.min(b)), escaped(a.max(b))));
    let ascii = prop::sample::select(vec!["a-z", "0-9", r"\d", r"\W", "[:^alpha:]", "[:punct:]", "s"]);
    let item = prop_oneof![named.clone(), range, character.clone().prop_map(escaped), ascii.prop_map(str::to_owned)];
    let class = (any::<bool>(), prop::collection::vec(item, 1..6));
    let class = class.prop_map(|(not, items)| format!("[{}{}]", if not { "^" } else { "" }, items.concat()));
    let other = prop::sample::select(vec![
        ".", "^", "$", r"\b", r"\B", r"\S", r"\d", "(?i)", "(?s)", "(?U:k)", "abc", "a|", "()",
    ]);
    let leaf = prop_oneof![character.prop_map(escaped), named, class, other.prop_map(str::to_owned)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let repetition = prop::sample::select(vec!["*", "+", "?", "{3}", "{0,4}", "{2,}", "{0}", "*?"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.join("|")),
            (inner.clone(), repetition).prop_map(|(part, operator)| format!("({part}){operator}")),
            inner.prop_map(|part| format!("(?i:{part})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn patterns_need_at_most_their_size(pattern in parts()) {
        let Ok(Translated { pattern: translated, size }) = translate(&pattern) else { return Ok(()) };
        prop_assume!(size < 4 << 20);
        let compiled = RegexBuilder::new(&translated).size_limit(size).build();
        prop_assert!(compiled.is_ok(), "{pattern}: {size}, {compiled:?}");
    }
}

#[test]
fn patterns_nest_as_deep_as_the_crate_compiles() {
    let nested = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    for (open, inner, close) in
        [("(", "a", ")"), ("(b", "a", ")"), ("(", "[ab]", ")*"), ("(b", "[a]", "|c)+"), ("(|", "", ")")]
    {
        let accepts = |levels: &usize| translate(&nested(open, inner, close, *levels)).is_ok();
        let levels = (1..300).take_while(accepts).last().unwrap();
        assert!(levels >= 60, "{open}{close}: {levels}");
        let translated = translate(&nested(open, inner, close, levels)).unwrap();
        assert!(Regex::new(&translated.pattern).is_ok(), "{open}{close}: {levels}");
        let refused = translate(&nested(open, inner, close, levels + 1));
        assert_eq!(refused, Err("expression too large".to_owned()), "{open}{close}");
    }
}
