//! Lists that are altered: every node that matters, and random bytes.

use super::{
    LIST, judge,
    mutate::{Mutant, Outline, Random, scramble},
    own_signers, real_lists,
};
use crate::minting::{Mint, Signer, canonical};

/// The real lists whose every node is altered: one by RSA-SHA256 with the first SigningCertificate, one of version 6, and one with KeyValue.
pub(super) fn originals() -> Vec<(String, Vec<u8>)> {
    let mut lists = real_lists("");
    lists.retain(|(name, _)| matches!(name.as_str(), "SE" | "FI"));
    let v6 = real_lists("v6").into_iter();
    lists.extend(v6.filter(|(name, _)| name == "fi-v6"));
    lists
}

/// What no signature of the profile covers: the Id of SignatureValue, what KeyInfo says beside the key and the certificate, and the white
/// space around the signature.
const NOT_SIGNED: [&str; 7] = [
    "SignatureValue/@Id",
    "KeyInfo/KeyValue",
    "X509Data/X509IssuerSerial",
    "X509IssuerSerial/X509IssuerName",
    "X509IssuerSerial/X509SerialNumber",
    "X509Data/X509SubjectName",
    "moved to the end TrustServiceStatusList/Signature",
];

/// Each change to a real list is refused; one that is not leaves the bytes that are signed as they were.
#[test]
fn every_change_of_a_real_list_is_refused() {
    for (name, bytes) in originals() {
        let signers = own_signers(&bytes);
        assert_eq!(judge(&bytes, &signers).err(), None, "{name}");
        let outline = Outline::new(&bytes);
        let signed = canonical(&outline.text, None);
        let mutants = outline.mutants();
        let mut accepted = Vec::new();
        for Mutant { name, bytes } in &mutants {
            if judge(bytes, &signers).is_ok() {
                let text = String::from_utf8(bytes.clone()).unwrap();
                assert_eq!(canonical(&text, None), signed, "{name}");
                accepted.push(name.clone());
            }
        }
        println!(
            "{name}: {} mutants, of which accepted: {accepted:?}",
            mutants.len()
        );
        let unexpected: Vec<_> = accepted
            .iter()
            .filter(|name| !NOT_SIGNED.iter().any(|part| name.contains(part)))
            .collect();
        assert_eq!(unexpected, [""; 0], "{name}");
        assert!(mutants.len() > 300, "{name}: {}", mutants.len());
    }
}

/// Random changes of bytes are refused, or leave the bytes that are signed as they were.
#[test]
fn random_changes_are_refused() {
    let signer = Signer::rsa("signer", 2048);
    let minted = Mint::new(&signer).sign(LIST);
    let mut lists = vec![("minted".to_owned(), minted)];
    lists.extend(real_lists("").into_iter().filter(|(name, _)| name == "DK"));
    let mut random = Random(20_260_429);
    // More on demand.
    let changes = std::env::var("PORTVAKT_CHANGES").map_or(2_000, |it| it.parse().unwrap());
    for (name, bytes) in lists {
        let signers = own_signers(&bytes);
        let signed = canonical(&String::from_utf8(bytes.clone()).unwrap(), None);
        let mut accepted = 0;
        for _ in 0..changes {
            let altered = scramble(&bytes, &mut random);
            if judge(&altered, &signers).is_ok() {
                let text = String::from_utf8(altered).unwrap();
                assert_eq!(canonical(&text, None), signed, "{name}: {text}");
                accepted += 1;
            }
        }
        println!(
            "{name}: {changes} random changes, {accepted} of which change nothing that is signed"
        );
        assert!(accepted < changes / 20, "{name}: {accepted}");
    }
}
