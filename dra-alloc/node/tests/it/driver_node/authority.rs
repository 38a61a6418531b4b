//! Rewriting of the kubelet's authority: the recorded frame, frames built after the rules, and any cut of a connection.

use dra_node::driver::AuthorityRewriter;
use proptest::collection::vec;
use proptest::prelude::*;

/// HEADERS of a kubelet's `GetInfo`, as recorded from grpc-go 1.81.
const RECORDED: &str = "00006d0104000000018386459c62ba2d98d558598c84d83498f52fb4b31909b06931ea63115392a94f41955458534d6a\
                        8b0c96775458663aa2c241d6ba0e4ebf5f8b1d75d0620d263d4c4d65647a8a9acac8b4c7602bbc15c340027465864d\
                        833505b11f40899acac8b24d494f6a7f860befbef34d5b";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const LOCALHOST: &[u8] = b"\x09localhost";
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;

fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

fn rewritten(frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    AuthorityRewriter::after_preface().feed(frame, &mut out);
    out
}

/// String with a length that may take several bytes.
fn string(text: &[u8], huffman: u8) -> Vec<u8> {
    let mut out = Vec::new();
    if text.len() < 0x7f {
        out.push(huffman | u8::try_from(text.len()).unwrap());
    } else {
        out.push(huffman | 0x7f);
        let mut rest = text.len() - 0x7f;
        while rest >= 0x80 {
            out.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
            rest >>= 7;
        }
        out.push(u8::try_from(rest).unwrap());
    }
    [out, text.to_vec()].concat()
}

#[test]
fn the_recorded_frame() {
    let from = rewritten(&hex(RECORDED));
    let authority = [b"\x41".as_slice(), LOCALHOST].concat();
    assert!(from.windows(authority.len()).any(|window| window == authority));
    assert_eq!(from[..3], [0, 0, 0x61]);
    assert_eq!(rewritten(&from), from, "a second time changes nothing");
}

/// `:authority` in Huffman code.
const CODED_NAME: &[u8] = b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f";

#[test]
fn every_literal_form_and_both_codes() {
    for (form, name) in [0x40_u8, 0, 0x10].into_iter().flat_map(|form| {
        let spelled = [string(b":authority", 0), string(CODED_NAME, 0x80)].map(|name| [vec![form], name].concat());
        [vec![form | 1]].into_iter().chain(spelled).map(move |name| (form, name))
    }) {
        for huffman in [0, 0x80] {
            for length in [0, 1, 0x7e, 0x7f, 0x80, 0xff, 0x100, 0x1000] {
                let value = vec![b'a'; length];
                let others = [b"\x83\x86\x20".as_slice(), b"\x40\x01x\x01y", b"\x0f\x00\x01z"];
                let block = [others.concat(), name.clone(), string(&value, huffman), others.concat()].concat();
                // A character of an authority takes up to 13 bits of a code.
                let least = if huffman == 0 { length } else { (8 * length).saturating_sub(7).div_ceil(13) };
                let host = string(&LOCALHOST[1..=least.min(9)], 0);
                let wanted = [others.concat(), name.clone(), host, others.concat()].concat();
                assert_eq!(
                    rewritten(&frame(HEADERS, END_HEADERS, &block)),
                    frame(HEADERS, END_HEADERS, &wanted),
                    "{form:x} {name:x?} {huffman:x} {length}"
                );
            }
        }
    }
}

#[test]
fn other_names_that_are_spelled_out_pass() {
    for (name, code) in
        [(b":authoritx".as_slice(), 0), (b"authority", 0), (b":authority", 0x80), (CODED_NAME, 0), (b"", 0)]
    {
        let block = [b"\x40".to_vec(), string(name, code), string(b"/f", 0)].concat();
        let frame = frame(HEADERS, END_HEADERS, &block);
        assert_eq!(rewritten(&frame), frame, "{name:?} {code}");
    }
}

#[test]
fn frames_that_pass_unchanged() {
    let block = b"\x83\x86\x41\x03%2F";
    for (name, kind, flags, payload) in [
        ("padded", HEADERS, END_HEADERS | 0x8, [b"\x01".as_slice(), block, b"\0"].concat()),
        ("prioritised", HEADERS, END_HEADERS | 0x20, [b"\0\0\0\0\x10".as_slice(), block].concat()),
        ("both", HEADERS, END_HEADERS | 0x28, [b"\x01\0\0\0\0\x10".as_slice(), block, b"\0"].concat()),
        ("to be continued", HEADERS, 0, block.to_vec()),
        ("continuation", 9, END_HEADERS, block.to_vec()),
        ("data", 0, 1, block.to_vec()),
        ("push promise", 5, END_HEADERS, block.to_vec()),
        ("value cut off", HEADERS, END_HEADERS, b"\x83\x41\x04%2F".to_vec()),
        ("length cut off", HEADERS, END_HEADERS, b"\x83\x41\x7f\x80".to_vec()),
        ("no value", HEADERS, END_HEADERS, b"\x83\x41".to_vec()),
        ("name cut off", HEADERS, END_HEADERS, b"\x41\x01a\x40\x05ab".to_vec()),
        ("a length without end", HEADERS, END_HEADERS, b"\x41\x7f\xff\xff\xff\xff\xff\xff\x01a".to_vec()),
        ("index 0", HEADERS, END_HEADERS, b"\x41\x01a\x80".to_vec()),
        ("empty", HEADERS, END_HEADERS, Vec::new()),
    ] {
        let frame = frame(kind, flags, &payload);
        assert_eq!(rewritten(&frame), frame, "{name}");
    }
}

#[test]
fn a_frame_beyond_the_default_size_passes_without_being_held_back() {
    let header = [b"\x00\x40\x01".as_slice(), &[HEADERS, END_HEADERS], &[0; 4]].concat();
    assert_eq!(rewritten(&header), header, "16,385 bytes are to come, and the header has passed already");
}

#[test]
fn the_table_grows_alike_on_both_sides() {
    // The second request refers to entry 62, which the first one left: nothing is to be rewritten in it.
    let second = frame(HEADERS, END_HEADERS, b"\x83\xbe");
    let mut rewriter = AuthorityRewriter::after_preface();
    let mut out = Vec::new();
    rewriter.feed(&frame(HEADERS, END_HEADERS, b"\x83\x41\x03%2F"), &mut out);
    rewriter.feed(&second, &mut out);
    assert!(out.ends_with(&second));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The bytes of a connection come in any pieces; the result is that of one piece.
    #[test]
    fn pieces_do_not_matter(
        frames in vec((0_u8..10, any::<u8>(), vec(any::<u8>(), 0..40)), 0..6),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let frames = frames.iter().flat_map(|(kind, flags, payload)| frame(*kind, *flags, payload));
        let stream: Vec<u8> = PREFACE.iter().copied().chain(hex(RECORDED)).chain(frames).collect();
        let mut whole = Vec::new();
        AuthorityRewriter::default().feed(&stream, &mut whole);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let (mut rewriter, mut out) = (AuthorityRewriter::default(), Vec::new());
        for pair in cuts.windows(2) {
            rewriter.feed(&stream[pair[0]..pair[1]], &mut out);
        }
        prop_assert_eq!(&out, &whole);
        prop_assert!(whole.starts_with(PREFACE));
    }

    /// Whatever a client sends: nothing is lost but the authorities' values, and nothing is held back after a whole frame.
    #[test]
    fn any_block(payload in vec(any::<u8>(), 0..200)) {
        let out = rewritten(&frame(HEADERS, END_HEADERS, &payload));
        let length = usize::from(out[1]) << 8 | usize::from(out[2]);
        prop_assert_eq!(out.len(), 9 + length);
        prop_assert_eq!(rewritten(&out), out);
    }
}
