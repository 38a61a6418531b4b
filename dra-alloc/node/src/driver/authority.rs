//! Rewriter of the kubelet's `:authority` in HTTP/2 request headers.
//!
//! The plugin manager of every kubelet dials registration sockets by their bare path, so that grpc-go sends the
//! percent-encoded path as `:authority`. The crates `http` and `h2` refuse that as malformed and reset the stream: a
//! server made with tonic or hyper is never registered. [`AuthorityRewriter`] goes between the socket and the server and
//! replaces the value by `localhost`.
//!
//! Source of the rules: RFC 9113 (frames), RFC 7541 (HPACK); behavior of grpc-go 1.81 and h2 0.4 as measured.

/// Length of a frame header: 3 bytes length, type, flags, 4 bytes stream.
const FRAME_HEADER: usize = 9;
/// Length of the text with which a client's connection begins.
const PREFACE: usize = 24;
/// Largest payload of a frame as long as the server announces no other (RFC 9113, 6.5.2).
const MAX_FRAME: usize = 16_384;

const HEADERS: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Position of `:authority` in the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
/// The name, spelled out, and the same in Huffman code (RFC 7541, appendix B).
const NAME: &[u8] = b":authority";
const NAME_IN_CODE: &[u8] = b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f";
/// Value that a server accepts, whole or its beginning.
const LOCALHOST: &[u8] = b"localhost";
/// Length of the longest code of a character that an authority may have, in bits (RFC 3986, 3.2; RFC 7541, appendix B).
const LONGEST_CODE: usize = 13;
/// Largest number of bits after the last code.
const LONGEST_PADDING: usize = 7;

/// Rewriter of one connection's bytes from the client to the server.
///
/// It holds back at most the header of a frame, or one HEADERS frame of 16 KiB; all other bytes pass as they come. A
/// block that is padded, prioritised, continued or can't be parsed passes unchanged, and it is the server's to answer. The
/// name of the field may be a number of the static table, as grpc-go sends it, or spelled out, as grpc-core does.
///
/// Later requests of a connection refer to the entry that the first one left in the dynamic table, which is then
/// `localhost` on the server's side. A value that may be shorter than that is replaced by a beginning of it: no entry is
/// larger than the client's, so that the server drops entries no earlier, and an index means the same to both for as long as
/// the connection lasts.
///
/// ```
/// use dra_node::driver::AuthorityRewriter;
/// let mut rewriter = AuthorityRewriter::default();
/// let mut to_server = Vec::new();
/// rewriter.feed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &mut to_server);
/// rewriter.feed(b"\0\0\x0b\x01\x04\0\0\0\x01\x41\x09%2Ff.sock", &mut to_server);
/// assert!(to_server.ends_with(b"\x41\x09localhost"));
/// ```
#[derive(Clone, Debug)]
pub struct AuthorityRewriter {
    /// Bytes that pass before the next frame header.
    passing: usize,
    /// Beginning of a frame that is not complete yet.
    held: Vec<u8>,
}

impl Default for AuthorityRewriter {
    fn default() -> Self {
        Self { passing: PREFACE, held: Vec::new() }
    }
}

impl AuthorityRewriter {
    /// Returns a rewriter for a connection whose preface has passed already.
    #[must_use]
    pub const fn after_preface() -> Self {
        Self { passing: 0, held: Vec::new() }
    }

    /// Takes the next bytes of the client and appends the bytes for the server to `out`. Linear in the number of bytes.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            bytes = if self.passing > 0 { self.pass(bytes, out) } else { self.hold(bytes, out) };
        }
    }

    /// Lets bytes of a frame through that is not rewritten. Returns the bytes after it.
    fn pass<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let (passed, rest) = bytes.split_at(self.passing.min(bytes.len()));
        out.extend_from_slice(passed);
        self.passing = self.passing.saturating_sub(passed.len());
        rest
    }

    /// Collects a frame header, and the payload if it is a block that can be rewritten. Returns the bytes after it.
    fn hold<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let wanted = FrameHeader::read(&self.held).map_or(FRAME_HEADER, |header| FRAME_HEADER + header.length);
        let missing = wanted.saturating_sub(self.held.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(taken);
        let Some(header) = FrameHeader::read(&self.held) else { return rest };
        if !header.is_plain_block() {
            self.passing = header.length;
            out.append(&mut self.held);
        } else if self.held.len() == FRAME_HEADER + header.length {
            rewrite(&self.held, out);
            self.held.clear();
        }
        rest
    }
}

#[derive(Clone, Copy)]
struct FrameHeader {
    length: usize,
    kind: u8,
    flags: u8,
}

impl FrameHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [high, middle, low, kind, flags, _, _, _, _] = *bytes.first_chunk::<FRAME_HEADER>()?;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Some(Self { length, kind, flags })
    }

    /// Returns true for a HEADERS frame whose payload is one whole block of fields.
    const fn is_plain_block(self) -> bool {
        self.kind == HEADERS
            && self.flags & (END_HEADERS | PADDED | PRIORITY) == END_HEADERS
            && self.length <= MAX_FRAME
    }
}

/// Appends a HEADERS frame with its authority replaced, or as it is.
fn rewrite(frame: &[u8], out: &mut Vec<u8>) {
    let Some((header, block)) = frame.split_first_chunk::<FRAME_HEADER>() else { return };
    let [_, _, _, kind, flags, stream @ ..] = *header;
    let rewritten = rewrite_block(block).and_then(|block| {
        // The block is longer by at most ten bytes a field; one that does not fit any more passes as it was.
        let length = u32::try_from(block.len()).ok().filter(|_| block.len() <= MAX_FRAME)?;
        Some((length.to_be_bytes(), block))
    });
    match rewritten {
        Some(([_, length @ ..], block)) => {
            out.extend_from_slice(&length);
            out.extend_from_slice(&[kind, flags]);
            out.extend_from_slice(&stream);
            out.extend_from_slice(&block);
        }
        None => out.extend_from_slice(frame),
    }
}

/// Returns a block of fields with each literal `:authority` replaced; `None` if it can't be parsed.
fn rewrite_block(block: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(block.len() + LOCALHOST.len());
    let mut rest = block;
    while let Some(first) = rest.first() {
        let field = Representation::of(*first);
        let mut reader = Reader(rest);
        let index = reader.integer(field.prefix_bits())?;
        match field {
            Representation::Indexed if index == 0 => return None,
            Representation::Indexed | Representation::TableSize => {}
            Representation::Literal { .. } => {
                let is_authority = if index == 0 { reader.string()?.is_authority() } else { index == AUTHORITY };
                let name_end = reader.0;
                let length = reader.string()?.least_length();
                if is_authority {
                    let value = LOCALHOST.get(..length).unwrap_or(LOCALHOST);
                    out.extend_from_slice(before(rest, name_end)?);
                    out.extend(u8::try_from(value.len()));
                    out.extend_from_slice(value);
                    rest = reader.0;
                    continue;
                }
            }
        }
        out.extend_from_slice(before(rest, reader.0)?);
        rest = reader.0;
    }
    Some(out)
}

/// Returns the bytes of `all` that come before its tail.
fn before<'a>(all: &'a [u8], tail: &[u8]) -> Option<&'a [u8]> {
    all.get(..all.len().checked_sub(tail.len())?)
}

/// Form in which a field is written (RFC 7541, 6).
#[derive(Clone, Copy)]
enum Representation {
    Indexed,
    Literal { indexed: bool },
    TableSize,
}

impl Representation {
    const fn of(first: u8) -> Self {
        match first {
            0x80.. => Self::Indexed,
            0x40..0x80 => Self::Literal { indexed: true },
            0x20..0x40 => Self::TableSize,
            0x00..0x20 => Self::Literal { indexed: false },
        }
    }

    /// Number of bits of the first byte that belong to the integer.
    const fn prefix_bits(self) -> u32 {
        match self {
            Self::Indexed => 7,
            Self::Literal { indexed: true } => 6,
            Self::TableSize => 5,
            Self::Literal { indexed: false } => 4,
        }
    }
}

/// Reader of integers and strings (RFC 7541, 5).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads an integer with a prefix of `bits` bits; `None` if it is cut off or larger than any frame.
    fn integer(&mut self, bits: u32) -> Option<usize> {
        let full = (1_usize << bits).saturating_sub(1);
        let mut value = usize::from(self.byte()?) & full;
        if value < full {
            return Some(value);
        }
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            value = value.saturating_add(usize::from(byte & 0x7f) << shift);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a string, plain or in Huffman code.
    fn string(&mut self) -> Option<Text<'a>> {
        let is_coded = self.0.first()? & 0x80 != 0;
        let length = self.integer(7)?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Text { bytes, is_coded })
    }
}

/// String as it is sent.
struct Text<'a> {
    bytes: &'a [u8],
    is_coded: bool,
}

impl Text<'_> {
    /// Returns true for the name `:authority`, which some clients spell out.
    fn is_authority(&self) -> bool {
        self.bytes == if self.is_coded { NAME_IN_CODE } else { NAME }
    }

    /// Returns the number of characters that an authority of these bytes has at least.
    fn least_length(&self) -> usize {
        let bits = self.bytes.len().saturating_mul(8).saturating_sub(LONGEST_PADDING);
        if self.is_coded { bits.div_ceil(LONGEST_CODE) } else { self.bytes.len() }
    }
}
