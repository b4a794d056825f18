//! The Signature header: its four parts, keyId and the algorithm: SIG-2 to SIG-5.

use super::{joined, padded, parts, pkcs1, private, replace, signed_by};
use crate::harness::{
    Call, Gate, Tpp, accepted,
    pki::{CaSpec, Key, LeafSpec},
    refused, rsa_key, world,
};
use openssl::{hash::MessageDigest, pkey::PKey, rsa::Rsa, sha::sha256, sign::Signer};
use std::sync::Arc;

//= SIG-2 accepted
#[test]
fn the_four_parts_in_any_order() {
    let gate = Gate::start();
    let orders: [fn(&[String; 4]) -> String; 4] = [
        |[k, a, h, s]| format!("signature=\"{s}\",headers=\"{h}\",algorithm=\"{a}\",keyId=\"{k}\""),
        |[k, a, h, s]| {
            format!("headers=\"{h}\" , keyId=\"{k}\" ,signature=\"{s}\", algorithm=\"{a}\"")
        },
        |[k, a, h, s]| {
            format!("algorithm=\"{a}\",\tsignature=\"{s}\"\t,   keyId=\"{k}\",headers=\"{h}\"")
        },
        |[k, a, h, s]| {
            format!("  keyId=\"{k}\",algorithm=\"{a}\",headers=\"{h}\",signature=\"{s}\"  ")
        },
    ];
    for order in orders {
        accepted(
            &gate,
            &Call::accounts().signature(move |signature| order(&parts(signature))),
        );
    }
}

//= SIG-2 refused
#[test]
fn other_parts() {
    let gate = Gate::start();
    let edits: [fn(&[String; 4]) -> String; 15] = [
        |[_, a, h, s]| format!("algorithm=\"{a}\",headers=\"{h}\",signature=\"{s}\""),
        |[k, _, h, s]| format!("keyId=\"{k}\",headers=\"{h}\",signature=\"{s}\""),
        |[k, a, _, s]| format!("keyId=\"{k}\",algorithm=\"{a}\",signature=\"{s}\""),
        |[k, a, h, _]| format!("keyId=\"{k}\",algorithm=\"{a}\",headers=\"{h}\""),
        |parts| format!("{},created=\"1\"", joined(parts)),
        |parts| format!("{},signature=\"{}\"", joined(parts), parts[3]),
        |parts| format!("keyId=\"{}\",{}", parts[0], joined(parts)),
        |parts| joined(parts).replace("keyId", "keyid"),
        |parts| joined(parts).replace("\",", "\";"),
        |parts| joined(parts).replace("\",", "\" "),
        |parts| format!("{},", joined(parts)),
        |parts| format!("Signature {}", joined(parts)),
        |[k, a, h, s]| format!("keyId=\"{k}\",algorithm={a},headers=\"{h}\",signature=\"{s}\""),
        |parts| joined(parts).trim_end_matches('"').to_owned(),
        |_| "x".to_owned(),
    ];
    for edit in edits {
        let call = Call::accounts().signature(move |signature| edit(&parts(signature)));
        refused(&gate, &call, 400, "FORMAT_ERROR", "signature-malformed");
    }
}

/// A TPP whose serial number has a leading zero in hexadecimal and letters.
fn serial() -> Call {
    Call::accounts().by(&world().issue(&LeafSpec {
        serial: Some(vec![0x0a, 0xbc, 0x01]),
        ..world().leaf()
    }))
}

fn with_serial(call: Call, serial: &'static str) -> Call {
    replace(call, 0, move |key_id| {
        format!("SN={serial},{}", key_id.split_once(',').unwrap().1)
    })
}

//= SIG-3 accepted
#[test]
fn serials() {
    let gate = Gate::start();
    for spelling in ["0ABC01", "ABC01", "abc01", "000000000abC01"] {
        accepted(&gate, &with_serial(serial(), spelling));
    }
}

/// A serial number whose first bit is set has a leading zero byte in DER. Some programs print that byte, some do not.
//= SIG-3 accepted
#[test]
fn a_serial_with_its_first_bit_set() {
    let gate = Gate::start();
    let spec = LeafSpec {
        serial: Some(vec![0x9a, 0xbc, 0x01]),
        ..world().leaf()
    };
    let call = Call::accounts().by(&world().issue(&spec));
    for spelling in ["9ABC01", "009ABC01", "9abc01"] {
        accepted(&gate, &with_serial(call.clone(), spelling));
    }
    // Read as a signed number.
    let negative = with_serial(call, "FF9ABC01");
    refused(
        &gate,
        &negative,
        400,
        "FORMAT_ERROR",
        "signature-key-mismatch",
    );
}

//= SIG-3 refused
#[test]
fn other_serials() {
    let gate = Gate::start();
    // The second is the serial in decimal.
    for spelling in ["0ABC02", "703489", "ABC010", "1ABC01", "0", "BC01"] {
        let answer = refused(
            &gate,
            &with_serial(serial(), spelling),
            400,
            "FORMAT_ERROR",
            "signature-key-mismatch",
        );
        assert!(
            answer.json()["faults"][0]["text"]
                .as_str()
                .unwrap()
                .contains("SN=0ABC01"),
            "the answer names the right one"
        );
    }
    for malformed in ["", "0x0ABC01", "0A:BC:01", "-1"] {
        refused(
            &gate,
            &with_serial(serial(), malformed),
            400,
            "FORMAT_ERROR",
            "signature-malformed",
        );
    }
}

/// Spellings of `C=NO, O=Portvakt Test CA\, AS, organizationIdentifier=NTRNO-000000000, CN=Portvakt Test CA G1`.
//= SIG-4 accepted
#[test]
fn spellings_of_the_issuer() {
    let gate = Gate::start();
    let spellings = [
        r"CN=Portvakt Test CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO",
        r"CN=Portvakt Test CA G1, OID.2.5.4.97=NTRNO-000000000, O=Portvakt Test CA\, AS, C=NO",
        r#"CN=Portvakt Test CA G1, OID.2.5.4.97=NTRNO-000000000, O="Portvakt Test CA, AS", C=NO"#,
        r#"CN=Portvakt Test CA G1, OID.2.5.4.97=NTRNO-000000000, O=\"Portvakt Test CA, AS\", C=NO"#,
        r"CN=Portvakt Test CA G1,organizationIdentifier=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO",
        r"CN=Portvakt Test CA G1,2.5.4.97=#0c0f4e54524e4f2d303030303030303030,O=Portvakt Test CA\2C AS,C=NO",
        // A PrintableString where the certificate has UTF-8.
        r"CN=Portvakt Test CA G1,2.5.4.97=#130f4e54524e4f2d303030303030303030,O=Portvakt Test CA\, AS,C=NO",
        r"cn = PORTVAKT TEST CA G1 ; 2.5.4.97 = ntrno-000000000 ; o = portvakt test ca\, as ; c = no",
        r"CN=Portvakt%20Test%20CA%20G1,2.5.4.97=NTRNO-000000000,O=Portvakt%20Test%20CA%5C,%20AS,C=NO",
    ];
    for spelling in spellings {
        accepted(&gate, &with_issuer(spelling.to_owned()));
    }
}

//= SIG-4 refused
#[test]
fn other_issuers() {
    let gate = Gate::start();
    let spellings = [
        // The order of the RDNs is significant.
        r"C=NO,O=Portvakt Test CA\, AS,2.5.4.97=NTRNO-000000000,CN=Portvakt Test CA G1",
        r"CN=Portvakt Test CA G1,O=Portvakt Test CA\, AS,2.5.4.97=NTRNO-000000000,C=NO",
        r"CN=Portvakt Test CA G1,O=Portvakt Test CA\, AS,C=NO",
        r"CN=Portvakt Test CA G2,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO",
        r"CN=Portvakt Test CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA, AS,C=NO",
        r"CN=Portvakt Test CA G1+2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO",
        r"CN=Portvakt%2520Test%2520CA%2520G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO",
        "CN=Portvakt Test CA G1",
        "x",
    ];
    for spelling in spellings {
        let answer = refused(
            &gate,
            &with_issuer(spelling.to_owned()),
            400,
            "FORMAT_ERROR",
            "signature-key-mismatch",
        );
        let text = answer.json()["faults"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            text.contains(
                r"CA=CN=Portvakt Test CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO"
            ),
            "the answer names the right one: {text}"
        );
    }
}

fn with_issuer(spelling: String) -> Call {
    replace(Call::accounts(), 0, move |key_id| {
        format!("{},CA={spelling}", key_id.split_once(',').unwrap().0)
    })
}

/// A gate that knows a CA of this organization, and a TPP of that CA.
fn below(organization: &str) -> (Gate, Arc<Tpp>) {
    let spec = CaSpec {
        organization: organization.into(),
        key: Key::RsaPem(world().issuing_key.clone()),
        ..CaSpec::default()
    };
    let issuing = world().root.issue_ca(&spec).unwrap();
    let gate = Gate::builder()
        .file("intermediates/another.pem", issuing.pem())
        .start();
    let tpp = Tpp::of(issuing.issue(&world().leaf()).unwrap());
    (gate, tpp)
}

/// Every spelling of the issuer identifies the TPP's certificate.
fn spelled(gate: &Gate, tpp: &Arc<Tpp>, spellings: &[&str]) {
    let serial = tpp.identity.key_id().split_once(',').unwrap().0.to_owned();
    for spelling in spellings {
        // The signer would put text outside ASCII into an encoded word (SIG-10); the test sends the text as it is.
        let call = Call::accounts().by(tpp).key_id("SN=0,CA=CN=x");
        let key_id = format!("{serial},CA={spelling}");
        accepted(gate, &replace(call, 0, move |_| key_id.clone()));
    }
}

/// An issuer outside ASCII: as hex pairs, as raw UTF-8, and as UTF-8 that was decoded as Latin-1 and encoded again.
//= SIG-4 accepted
#[test]
fn an_issuer_outside_ascii() {
    let (gate, tpp) = below(&CaSpec::default().organization);
    let spellings = [
        r"CN=Portvakt Pr\C3\B8ve-CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Pr\C3\B8ve-CA\, utvikling,C=NO",
        r"CN=Portvakt Pr%C3%B8ve-CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Pr%C3%B8ve-CA%5C, utvikling,C=NO",
        "CN=Portvakt Pr\u{f8}ve-CA G1,2.5.4.97=NTRNO-000000000,O=\"Portvakt Pr\u{f8}ve-CA, utvikling\",C=NO",
        "CN=Portvakt Pr\u{c3}\u{b8}ve-CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Pr\u{c3}\u{b8}ve-CA\\, utvikling,C=NO",
    ];
    spelled(&gate, &tpp, &spellings);
}

/// A header cannot contain a newline of a name: the newline is escaped, encoded or replaced by a space.
//= SIG-4 accepted
#[test]
fn an_issuer_with_a_newline() {
    let (gate, tpp) = below("Portvakt\r\nTest");
    let spellings = [
        r"CN=Portvakt Pr\C3\B8ve-CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt\0D\0ATest,C=NO",
        r"CN=Portvakt Pr\C3\B8ve-CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test,C=NO",
        r"CN=Portvakt%20Pr%C3%B8ve-CA%20G1,2.5.4.97=NTRNO-000000000,O=Portvakt%0D%0ATest,C=NO",
    ];
    spelled(&gate, &tpp, &spellings);
}

//= SIG-5 accepted
#[test]
fn the_algorithm_in_any_case_and_keys_of_accepted_sizes() {
    let gate = Gate::start();
    for algorithm in ["rsa-sha256", "RSA-SHA256", "Rsa-Sha256"] {
        accepted(
            &gate,
            &replace(Call::accounts(), 1, move |_| algorithm.to_owned()),
        );
    }
    for bits in [3072, 4096] {
        let tpp = world().issue(&LeafSpec {
            key: Key::RsaPem(rsa_key(bits)),
            ..world().leaf()
        });
        accepted(&gate, &Call::accounts().by(&tpp));
    }
}

//= SIG-5 refused
#[test]
fn other_algorithms() {
    let gate = Gate::start();
    for algorithm in [
        "hs2019",
        "rsa-sha512",
        "rsa-sha1",
        "SHA256withRSA",
        "hmac-sha256",
        "none",
        "",
        "rsa-sha256 ",
    ] {
        refused(
            &gate,
            &replace(Call::accounts(), 1, move |_| algorithm.to_owned()),
            400,
            "FORMAT_ERROR",
            "signature-algorithm-unsupported",
        );
    }
}

//= SIG-5 refused
#[test]
fn keys_that_are_weak() {
    let gate = Gate::start();
    let exponent = |exponent: u32| {
        let exponent = openssl::bn::BigNum::from_u32(exponent).unwrap();
        let key = PKey::from_rsa(Rsa::generate_with_e(2048, &exponent).unwrap()).unwrap();
        String::from_utf8(key.private_key_to_pem_pkcs8().unwrap()).unwrap()
    };
    for key in [rsa_key(1024), rsa_key(2040), exponent(3), exponent(17)] {
        let tpp = world().issue(&LeafSpec {
            key: Key::RsaPem(key),
            ..world().leaf()
        });
        refused(
            &gate,
            &Call::accounts().by(&tpp),
            403,
            "FORBIDDEN",
            "certificate-weak",
        );
    }
    let elliptic = world()
        .issuing
        .issue(&LeafSpec {
            key: Key::EcP256,
            ..world().leaf()
        })
        .unwrap();
    let tpp = Tpp::showing(elliptic.der, &world().tpp_key);
    refused(
        &gate,
        &Call::accounts().by(&tpp),
        403,
        "FORBIDDEN",
        "certificate-weak",
    );
}

//= SIG-5 refused
#[test]
fn padding_is_checked_strictly() {
    let gate = Gate::start();
    let key = &world().tpp_key;
    // DigestInfo of SHA-256 up to the hash.
    let info =
        b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20".to_vec();
    type Block = fn(&[u8], &[u8]) -> Vec<u8>;
    let blocks: [(bool, Block); 4] = [
        (true, |info, hash| {
            [&[0, 1][..], &vec![0xff; 202], &[0], info, hash].concat()
        }),
        // Garbage follows the hash.
        (false, |info, hash| {
            [&[0, 1][..], &[0xff; 8], &[0], info, hash, &[7; 194]].concat()
        }),
        // The padding is not all ones.
        (false, |info, hash| {
            [&[0, 1][..], &vec![0xff; 201], &[0xfe], &[0], info, hash].concat()
        }),
        // Another block type.
        (false, |info, hash| {
            [&[0, 2][..], &vec![0xff; 202], &[0], info, hash].concat()
        }),
    ];
    for (right, block) in blocks {
        let (key, info) = (key.clone(), info.clone());
        let call = signed_by(Call::accounts(), move |request| {
            padded(
                &key,
                &block(&info, &sha256(request.signing_string.as_bytes())),
            )
        });
        if right {
            accepted(&gate, &call);
        } else {
            refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
        }
    }
}

//= SIG-5 refused
#[test]
fn signatures_of_other_kinds() {
    let gate = Gate::start();
    let key = world().tpp_key.clone();
    let pss = signed_by(Call::accounts(), {
        let key = key.clone();
        move |request| {
            let key = private(&key);
            let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
            signer
                .set_rsa_padding(openssl::rsa::Padding::PKCS1_PSS)
                .unwrap();
            signer.update(request.signing_string.as_bytes()).unwrap();
            signer.sign_to_vec().unwrap()
        }
    });
    refused(&gate, &pss, 400, "FORMAT_ERROR", "signature-mismatch");
    for digest in [MessageDigest::sha1(), MessageDigest::sha512()] {
        let key = key.clone();
        let call = signed_by(Call::accounts(), move |request| {
            pkcs1(&key, digest, &request.signing_string)
        });
        refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
    }
}
