//! Malformed texts and names: the parser does not panic, and is fast.

use super::{BMP, C, CN, EMAIL, IA5, O, PRINTABLE, UTF8, check, der, first_authority};
use crate::name::{MAX_TEXT, Name};

#[test]
fn a_text_of_nothing_but_trouble_ends_quickly() {
    let issuer = first_authority();
    for piece in [
        "\\",
        "\"",
        "+",
        ",",
        "=",
        "#",
        "%5C",
        "%25",
        "\\\"",
        "\\5C",
        "C=+",
        "C=,",
        "C=\"\",",
        "C=\"\"+",
        "O=\\C3\\AD,",
        " ",
        "\u{ad}",
        "2.",
        "9",
        "C=#0c00+",
        "C=\\",
    ] {
        let text = piece.repeat(MAX_TEXT / piece.len());
        assert!(issuer.compare(text.as_bytes()).is_err(), "{piece}");
        assert!(
            issuer.compare(format!("O=\"{text}").as_bytes()).is_err(),
            "{piece}"
        );
        assert!(
            issuer.compare(format!("O={text}").as_bytes()).is_err(),
            "{piece}"
        );
    }
    assert!(issuer.compare(&[0xff; MAX_TEXT]).is_err());
}

/// A linear congruential generator (Knuth's MMIX): it generates the same bytes in every run.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn no_bytes_make_it_panic_and_what_is_displayed_matches() {
    const ODD: &[u8] = b"\\\"+,;=#% \n0Cc\xc3\xad\xff\x00";
    let mut random = Lcg(20_180_114);
    let texts = [
        first_authority().to_string(),
        r#"OID.2.5.4.97=NTRCZ-26439395, O=\"První%20cert, a.s.\" + OU="x""y", CN=#0c0161;C=Prvn\C3\AD"#.to_owned(),
    ];
    let issuer = first_authority();
    let whole = der(&[
        &[(C, PRINTABLE, b"NO")],
        &[(O, BMP, b"\x01\x42"), (CN, UTF8, b"Bank, a\"s")],
        &[(EMAIL, IA5, b"#a@b ")],
    ]);
    for round in 0..20_000 {
        let mut text = texts[round % 2].clone().into_bytes();
        let mut name = whole.clone();
        for _ in 0..=random.below(4) {
            let place = random.below(text.len());
            text[place] = ODD[random.below(ODD.len())];
            let place = random.below(name.len());
            name[place] = u8::try_from(random.below(256)).unwrap();
        }
        let _ = issuer.compare(&text);
        if let Ok(mutant) = Name::from_der(&name) {
            check(&mutant, mutant.to_string(), true);
        }
    }
}
