//! Many requests on one connection: the tables of fields at both of its ends, written after RFC 7541, by which an index is read.

use std::collections::VecDeque;

use dra_node::driver::AuthorityRewriter;
use proptest::collection::vec;
use proptest::prelude::*;

const AUTHORITY: &str = ":authority";
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;
/// Number of entries of the static table, before those of the dynamic one.
const STATIC: usize = 61;
/// Codes of the characters of a short path, with their lengths in bits.
const CODES: [(char, u32, u32); 8] = [
    ('%', 0x15, 6),
    ('2', 0x2, 5),
    ('F', 0x63, 7),
    ('a', 0x3, 5),
    ('o', 0x7, 5),
    ('s', 0x8, 5),
    ('t', 0x9, 5),
    ('~', 0x1ffd, 13),
];

type Field = (String, String);

/// Dynamic table, the newest entry first.
struct Table {
    entries: VecDeque<Field>,
    limit: usize,
}

impl Table {
    const fn new() -> Self {
        Self { entries: VecDeque::new(), limit: 4096 }
    }

    fn size(&self) -> usize {
        self.entries.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }

    fn resize(&mut self, limit: usize) {
        self.limit = limit;
        while self.size() > limit {
            self.entries.pop_back();
        }
    }

    fn add(&mut self, field: Field) {
        self.entries.push_front(field);
        self.resize(self.limit);
    }
}

fn integer(first: u8, bits: u32, mut value: usize, out: &mut Vec<u8>) {
    let full = (1 << bits) - 1;
    if value < full {
        out.push(first | u8::try_from(value).unwrap());
        return;
    }
    out.push(first | u8::try_from(full).unwrap());
    value -= full;
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

fn plain(text: &str, out: &mut Vec<u8>) {
    integer(0, 7, text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// Writes a text in Huffman code.
fn coded(text: &str, out: &mut Vec<u8>) {
    let mut bits = String::new();
    for letter in text.chars() {
        let (_, code, length) = CODES.into_iter().find(|(known, ..)| *known == letter).unwrap();
        bits.push_str(&format!("{code:032b}")[32 - usize::try_from(length).unwrap()..]);
    }
    bits.push_str(&"1".repeat((8 - bits.len() % 8) % 8));
    integer(0x80, 7, bits.len() / 8, out);
    out.extend(
        bits.as_bytes().chunks(8).map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap()),
    );
}

/// Client that enters every field in its table.
struct Client {
    table: Table,
    is_coded: bool,
}

impl Client {
    fn frame(&mut self, fields: &[Field], limit: Option<usize>) -> Vec<u8> {
        let mut block = Vec::new();
        if let Some(limit) = limit {
            integer(0x20, 5, limit, &mut block);
            self.table.resize(limit);
        }
        for field in fields {
            if let Some(known) = self.table.entries.iter().position(|entry| entry == field) {
                integer(0x80, 7, STATIC + 1 + known, &mut block);
                continue;
            }
            if field.0 == AUTHORITY {
                block.push(0x41);
            } else {
                block.push(0x40);
                plain(&field.0, &mut block);
            }
            let write = if field.0 == AUTHORITY && self.is_coded { coded } else { plain };
            write(&field.1, &mut block);
            self.table.add(field.clone());
        }
        let [_, length @ ..] = u32::try_from(block.len()).unwrap().to_be_bytes();
        [&length, &[HEADERS, END_HEADERS, 0, 0, 0, 1][..], &block].concat()
    }
}

/// Bytes of a frame that a server reads.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn integer(&mut self, bits: u32) -> usize {
        let full = (1 << bits) - 1;
        let mut value = usize::from(self.byte()) & full;
        let mut shift = 0;
        while value >= full {
            let byte = self.byte();
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    fn string(&mut self) -> String {
        assert_eq!(self.0[0] & 0x80, 0, "the rewriter writes no code, and the client for the authority alone");
        let length = self.integer(7);
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(text.to_vec()).unwrap()
    }
}

/// Reads the fields of a frame with the server's table.
fn read(frame: &[u8], table: &mut Table) -> Result<Vec<Field>, String> {
    let (mut reader, mut fields) = (Reader(&frame[9..]), Vec::new());
    while let Some(first) = reader.0.first() {
        let field = match first {
            0x80.. => {
                let index = reader.integer(7);
                let known = table.entries.get(index - STATIC - 1);
                known.cloned().ok_or_else(|| format!("index {index} of {}", table.entries.len()))?
            }
            0x40..0x80 => {
                let index = reader.integer(6);
                let name = if index == 1 { AUTHORITY.to_owned() } else { reader.string() };
                let field = (name, reader.string());
                table.add(field.clone());
                field
            }
            _ => {
                let limit = reader.integer(5);
                table.resize(limit);
                continue;
            }
        };
        fields.push(field);
    }
    Ok(fields)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The fields that come often enough to fill and empty the table are read as they were written, but for the authority.
    #[test]
    fn an_index_means_the_same_to_both_ends(
        authority in "[%2Faost~]{1,60}",
        is_coded in any::<bool>(),
        requests in vec((vec((0..6_usize, 0..400_usize), 0..12), prop::option::weighted(0.1, 0..4096_usize)), 1..60),
    ) {
        let (mut client, mut server) = (Client { table: Table::new(), is_coded }, Table::new());
        let mut rewriter = AuthorityRewriter::after_preface();
        for (others, limit) in &requests {
            let others = others.iter().map(|(name, length)| (format!("x-{name}"), "v".repeat(*length)));
            let fields: Vec<Field> = std::iter::once((AUTHORITY.to_owned(), authority.clone())).chain(others).collect();
            let mut frame = Vec::new();
            rewriter.feed(&client.frame(&fields, *limit), &mut frame);
            let seen = read(&frame, &mut server).map_err(TestCaseError::fail)?;
            prop_assert_eq!(&seen[1..], &fields[1..]);
            let host = &seen[0].1;
            prop_assert!(seen[0].0 == AUTHORITY && !host.is_empty() && "localhost".starts_with(host.as_str()), "{}", host);
        }
    }
}
