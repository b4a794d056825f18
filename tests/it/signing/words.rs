//! A Signature in RFC 2047 encoded words, which clients use if the issuer's name is not ASCII: SIG-10.

use super::{joined, parts};
use crate::harness::{
    Call, Gate, Tpp, accepted,
    pki::{Ca, CaSpec},
    refused, world,
};
use openssl::base64::encode_block;
use std::sync::{Arc, LazyLock};

/// RFC 2047, section 2: the maximum length of an encoded word.
const WORD: usize = 75;

/// A CA whose name is outside ASCII, and a TPP of it.
static NORSK: LazyLock<(Ca, Arc<Tpp>)> = LazyLock::new(|| {
    let ca = world().root.issue_ca(&CaSpec::default()).unwrap();
    let tpp = Tpp::of(ca.issue(&world().leaf()).unwrap());
    (ca, tpp)
});

fn gate() -> Gate {
    let builder = Gate::builder();
    builder
        .file("intermediates/norsk.pem", NORSK.0.pem())
        .start()
}

/// A call whose Signature is encoded by `encode`.
fn encoded(encode: impl Fn(&str) -> String + Send + Sync + 'static) -> Call {
    let tpp = &NORSK.1;
    let serial = tpp.identity.key_id().split_once(',').unwrap().0.to_owned();
    let key_id = format!(
        "{serial},CA=CN=Portvakt Pr\u{f8}ve-CA G1,2.5.4.97=NTRNO-000000000,O=\"Portvakt Pr\u{f8}ve-CA, utvikling\",C=NO"
    );
    // The test inserts the characters that the signer would encode by itself later.
    let call = Call::accounts().by(tpp).key_id("SN=0,CA=CN=x");
    call.signature(move |signature| {
        let mut parts = parts(signature);
        parts[0].clone_from(&key_id);
        encode(&joined(&parts))
    })
}

/// The bytes of a text in a charset.
fn bytes(charset: &str, text: &str) -> Vec<u8> {
    if charset.eq_ignore_ascii_case("utf-8") {
        return text.as_bytes().to_vec();
    }
    text.chars()
        .map(|letter| u8::try_from(letter).unwrap())
        .collect()
}

/// Encoded words of at most this number of bytes of text, as Java's MimeUtility folds them, with `between` at each fold.
fn folded(charset: &str, encoding: &str, bytes: &[u8], size: usize, between: &str) -> String {
    let q = |byte: &u8| match byte {
        b' ' => "_".to_owned(),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*byte).to_string(),
        other => format!("={other:02X}"),
    };
    let words: Vec<_> = bytes
        .chunks(size)
        .map(|part| {
            let text = match encoding {
                "B" | "b" => encode_block(part),
                _ => part.iter().map(q).collect(),
            };
            format!("=?{charset}?{encoding}?{text}?=")
        })
        .collect();
    words.join(between)
}

//= SIG-10 accepted
#[test]
fn one_word_or_several_in_each_encoding_and_charset() {
    let gate = gate();
    for charset in ["utf-8", "UTF-8", "iso-8859-1", "ISO-8859-1"] {
        for encoding in ["B", "Q", "b", "q"] {
            // Q uses up to three letters per byte; B uses four letters for three bytes.
            let fitting = if encoding.eq_ignore_ascii_case("b") {
                42
            } else {
                18
            };
            for (size, between) in [(usize::MAX, ""), (fitting, " "), (fitting, "  ")] {
                let call = encoded(move |plain| {
                    let value = folded(charset, encoding, &bytes(charset, plain), size, between);
                    let mut words = value.split(' ');
                    assert!(size == usize::MAX || words.all(|word| word.len() <= WORD));
                    value
                });
                accepted(&gate, &call);
            }
        }
    }
}

/// One encoded word for the whole text.
fn word(text: &str) -> String {
    folded("utf-8", "B", text.as_bytes(), usize::MAX, "")
}

//= SIG-10 refused
#[test]
fn words_that_are_not_the_whole_value() {
    let gate = gate();
    let edits: [fn(&str) -> String; 6] = [
        // Decoded once: the result is an encoded word, and no Signature.
        |plain| word(&word(plain)),
        |plain| format!("{} x", word(plain)),
        |plain| format!("{},signature=\"A\"", word(plain)),
        |plain| word(plain).replacen("utf-8", "utf-16", 1),
        |plain| word(plain).replacen("?B?", "?X?", 1),
        |plain| word(plain).trim_end_matches('=').to_owned(),
    ];
    for edit in edits {
        let call = encoded(edit);
        refused(&gate, &call, 400, "FORMAT_ERROR", "signature-malformed");
    }
}
