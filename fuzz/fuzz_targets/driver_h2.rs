//! The kubelet's authority: any bytes of a client, in any pieces, pass as in one piece; nothing is held back for long.
#![no_main]

use dra_alloc::driver::AuthorityRewriter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, piece) = input;
    let (mut whole, mut pieces) = (Vec::new(), Vec::new());
    AuthorityRewriter::after_preface().feed(&bytes, &mut whole);
    let mut rewriter = AuthorityRewriter::after_preface();
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        rewriter.feed(piece, &mut pieces);
    }
    assert_eq!(whole, pieces);
    let mut again = Vec::new();
    AuthorityRewriter::after_preface().feed(&whole, &mut again);
    assert_eq!(again, whole, "what was rewritten stays as it is");
});
