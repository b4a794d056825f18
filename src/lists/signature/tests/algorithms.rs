//! Every algorithm of the closed list, signed by OpenSSL; and those that are outside of the list.

use super::{LIST, judge};
use crate::minting::{Mint, Signer, method};
use openssl::{hash::MessageDigest, nid::Nid};

const MORE: &str = "http://www.w3.org/2001/04/xmldsig-more#";
const MORE_2007: &str = "http://www.w3.org/2007/05/xmldsig-more#";

fn hashes() -> [(&'static str, MessageDigest, i32); 3] {
    [
        ("256", MessageDigest::sha256(), 32),
        ("384", MessageDigest::sha384(), 48),
        ("512", MessageDigest::sha512(), 64),
    ]
}

/// Signs the list of the tests and judges the result.
fn outcome(mint: &Mint<'_>) -> Result<(), String> {
    let list = mint.sign(LIST);
    let found = judge(&list, std::slice::from_ref(&mint.signer.certificate));
    found.map(drop).map_err(|refusal| refusal.to_string())
}

/// SignatureMethod of RSASSA-PSS with its parameters.
fn pss(digest: &str, mask: &str, salt: &str) -> String {
    let hash = |bits: &str| match bits {
        "384" => format!("<ds:DigestMethod Algorithm=\"{MORE}sha384\"/>"),
        _ => format!("<ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha{bits}\"/>"),
    };
    let (digest, mask) = (hash(digest), hash(mask));
    format!(
        "<ds:SignatureMethod Algorithm=\"{MORE_2007}rsa-pss\"><pss:RSAPSSParams xmlns:pss=\"{MORE_2007}\">{digest}<pss:MaskGenerationFunction Algorithm=\"{MORE_2007}MGF1\">{mask}</pss:MaskGenerationFunction>{salt}<pss:TrailerField>1</pss:TrailerField></pss:RSAPSSParams></ds:SignatureMethod>"
    )
}

#[test]
fn rsa_verifies() {
    let signer = Signer::rsa("rsa", 3072);
    for (bits, hash, salt) in hashes() {
        let pkcs1 = Mint {
            method: method(&format!("{MORE}rsa-sha{bits}")),
            hash,
            ..Mint::new(&signer)
        };
        assert_eq!(outcome(&pkcs1), Ok(()), "PKCS#1 {bits}");
        for is_v2 in [true, false] {
            let short = Mint {
                method: method(&format!("{MORE_2007}sha{bits}-rsa-MGF1")),
                salt: Some(salt),
                is_v2,
                ..pkcs1.clone()
            };
            assert_eq!(outcome(&short), Ok(()), "PSS {bits}");
        }
        let salt_length = format!("<pss:SaltLength>{salt}</pss:SaltLength>");
        for length in [salt_length.as_str(), ""] {
            let long = Mint {
                method: pss(bits, bits, length),
                salt: Some(salt),
                ..pkcs1.clone()
            };
            assert_eq!(outcome(&long), Ok(()), "PSS with parameters {bits}");
        }
    }
    let plain = Mint {
        method: method(&format!("{MORE_2007}rsa-pss")),
        hash: MessageDigest::sha256(),
        salt: Some(32),
        ..Mint::new(&signer)
    };
    assert_eq!(outcome(&plain), Ok(()), "PSS with the default parameters");
}

/// Norway's list of 2019 is signed by a key of 2 032 bits.
#[test]
fn rsa_keys_may_have_1900_bits() {
    let signer = Signer::rsa("short", 1904);
    assert_eq!(outcome(&Mint::new(&signer)), Ok(()));
    let signer = Signer::rsa("shorter", 1888);
    let reason = outcome(&Mint::new(&signer)).unwrap_err();
    assert!(
        reason.contains("has 1888 bits, fewer than 1900"),
        "{reason}"
    );
}

#[test]
fn ecdsa_verifies_on_each_curve_with_each_hash() {
    let curves = [Nid::X9_62_PRIME256V1, Nid::SECP384R1, Nid::SECP521R1];
    for curve in curves {
        let signer = Signer::ecdsa("ecdsa", curve);
        for (bits, hash, _) in hashes() {
            let mint = Mint {
                method: method(&format!("{MORE}ecdsa-sha{bits}")),
                hash,
                ..Mint::new(&signer)
            };
            // One signature in 256 begins with a zero.
            for _ in 0..20 {
                assert_eq!(outcome(&mint), Ok(()), "{curve:?} {bits}");
            }
        }
    }
}

#[test]
fn other_algorithms_and_keys_are_refused() {
    let rsa = Signer::rsa("rsa", 2048);
    let curve = Signer::ecdsa("ecdsa", Nid::X9_62_PRIME256V1);
    let koblitz = Signer::ecdsa("koblitz", Nid::SECP256K1);
    let weak = Signer::rsa("weak", 1024);
    let refuse = |mint: Mint<'_>, expected: &str| {
        let reason = outcome(&mint).unwrap_err();
        assert!(
            reason.contains(expected),
            "{expected:?} is not in {reason:?}"
        );
    };
    let with = |signer, method: String, salt| Mint {
        method,
        salt,
        ..Mint::new(signer)
    };
    let rsa_512 = || method(&format!("{MORE}rsa-sha512"));
    let ecdsa_512 = || method(&format!("{MORE}ecdsa-sha512"));
    refuse(with(&weak, rsa_512(), None), "has 1024 bits");
    refuse(with(&curve, rsa_512(), None), "the signer's key is not");
    refuse(with(&rsa, ecdsa_512(), None), "not of a named curve");
    refuse(with(&koblitz, ecdsa_512(), None), "only P-256");
    // PKCS#1 under the name of PSS, and the other way round.
    let short = method(&format!("{MORE_2007}sha512-rsa-MGF1"));
    refuse(with(&rsa, short.clone(), None), "does not verify");
    refuse(with(&rsa, rsa_512(), Some(64)), "does not verify");
    refuse(with(&rsa, short, Some(20)), "does not verify");
    // Another hash than the name says.
    let sha256 = method(&format!("{MORE}rsa-sha256"));
    refuse(with(&rsa, sha256, None), "does not verify");
    // Parameters of PSS.
    let salt = |length: &str| format!("<pss:SaltLength>{length}</pss:SaltLength>");
    let of = |digest, mask, salt: String| with(&rsa, pss(digest, mask, &salt), Some(64));
    refuse(of("512", "256", salt("64")), "mask has another hash");
    refuse(of("512", "512", salt("20")), "a salt of");
    refuse(
        of("512", "512", salt("64").repeat(2)),
        "a second SaltLength",
    );
    let other = pss("512", "512", "").replace("MGF1\"", "MGF2\"");
    refuse(with(&rsa, other, Some(64)), "mask generation function");
    let trailer = pss("512", "512", "").replace(">1<", ">2<");
    refuse(with(&rsa, trailer, Some(64)), "TrailerField");
}

#[test]
fn key_value_must_be_the_key_of_the_certificate() {
    let signer = Signer::rsa("rsa", 2048);
    let mint = Mint::new(&signer);
    let list = String::from_utf8(mint.sign(LIST)).unwrap();
    let other = "<ds:KeyInfo><ds:KeyValue><ds:RSAKeyValue><ds:Modulus>AQAB</ds:Modulus><ds:Exponent>AQAB</ds:Exponent></ds:RSAKeyValue></ds:KeyValue>";
    let list = list.replace("<ds:KeyInfo>", other);
    let found = judge(list.as_bytes(), std::slice::from_ref(&signer.certificate));
    let reason = found.unwrap_err().to_string();
    assert!(reason.contains("another key than"), "{reason}");
}
