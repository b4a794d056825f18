//! A trusted list: reading it and verifying it end without a panic, whatever the bytes are. A list pins its own certificates here, so that
//! the digests are compared too. Seeds: src/lists/signature/tests/seeds.rs, and lists of the EU by hand.
#![no_main]

use portvakt_lists::{Certificate, Document, Element, verify};

fn certificates(element: Element<'_>, found: &mut Vec<Certificate>) {
    if element.local() == "X509Certificate" && found.len() < 4 {
        found.extend(Certificate::from_base64(&element.text()));
    }
    for child in element.children() {
        certificates(child, found);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(document) = Document::parse(bytes.to_vec()) {
        let mut pins = Vec::new();
        if let Some(last) = document.root().children().last() {
            certificates(last, &mut pins);
        }
        let _ = verify(&document, &pins);
    }
});
