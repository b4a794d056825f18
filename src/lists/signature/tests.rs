//! Real lists verify; altered ones are refused, each with its reason.

// Every algorithm.
mod algorithms;
// XML that two readers may read in two ways.
mod ambiguous;
// Lists that are altered in every place that matters.
mod hostile;
// Altering a list.
mod mutate;
// Signatures of another profile, and other signers.
mod profile;
// What the fuzzer starts with.
mod seeds;
// The verifier beside xmlsec1.
mod systems;
// Signature wrapping.
mod wrapping;

use super::verify;
use crate::{
    Certificate, Document, Refusal,
    minting::{Mint, Signer},
};
use std::fs;

/// The namespace of XML signatures, for tests.
pub(super) const DS: &str = super::shape::DS;

/// The real lists, beside the project; empty where there are none.
pub(super) fn real_lists(folder: &str) -> Vec<(String, Vec<u8>)> {
    let Some(root) = crate::for_tests::real_lists() else {
        return Vec::new();
    };
    let files = fs::read_dir(root.join(folder)).unwrap();
    let mut lists: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    lists.sort();
    lists
}

/// The certificates that a list's own signature has: a stand-in for the pins of a list that is known to be good.
pub(super) fn own_signers(bytes: &[u8]) -> Vec<Certificate> {
    let Ok(document) = Document::parse(bytes.to_vec()) else {
        return Vec::new();
    };
    let signature = document.root().child(DS, "Signature");
    let data = signature
        .and_then(|it| it.child(DS, "KeyInfo"))
        .and_then(|it| it.child(DS, "X509Data"));
    let all = data.into_iter().flat_map(|data| data.children());
    all.filter(|it| it.is(DS, "X509Certificate"))
        .take(1)
        .map(|it| Certificate::from_base64(&it.text()).unwrap())
        .collect()
}

/// Verifies a list by these signers.
pub(super) fn judge(bytes: &[u8], signers: &[Certificate]) -> Result<String, Refusal> {
    let document = Document::parse(bytes.to_vec())?;
    let signed = verify(&document, signers)?;
    Ok(signed.signer().subject())
}

/// A small list that the tests sign.
pub(crate) const LIST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<TrustServiceStatusList xmlns="http://uri.etsi.org/02231/v2#" xmlns:a="http://uri.etsi.org/02231/v2/additionaltypes#" Id="list" TSLTag="http://uri.etsi.org/19612/TSLTag">
  <SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier><TSLSequenceNumber>7</TSLSequenceNumber></SchemeInformation>
  <TrustServiceProviderList><TSPName xml:lang="en">Good &amp; Sons</TSPName><a:MimeType>text/xml</a:MimeType></TrustServiceProviderList>
</TrustServiceStatusList>
"#;

/// Asserts that a list is refused, for a reason with these words.
pub(super) fn assert_refused(list: &str, signers: &[Certificate], expected: &str) {
    let found = judge(list.as_bytes(), signers);
    let reason = found.expect_err(expected).to_string();
    assert!(
        reason.contains(expected),
        "{expected:?} is not in {reason:?}"
    );
}

/// The signed list of the tests, and its signer.
pub(super) fn minted(root: &'static str) -> (String, Vec<Certificate>) {
    let signer = Signer::rsa("signer", 2048);
    let mint = Mint {
        root,
        ..Mint::new(&signer)
    };
    let list = String::from_utf8(mint.sign(LIST)).unwrap();
    let signers = vec![signer.certificate.clone()];
    assert_eq!(judge(list.as_bytes(), &signers).err(), None);
    (list, signers)
}

#[test]
fn real_lists_verify() {
    for folder in ["", "v6", "pivots"] {
        for (name, bytes) in real_lists(folder) {
            if name.starts_with("fi-v6-no-") && name != "fi-v6-no-supply-points-type" {
                continue;
            }
            let found = judge(&bytes, &own_signers(&bytes));
            println!("{name}: {found:?}");
            assert!(found.is_ok(), "{name}: {found:?}");
        }
    }
}

/// The reasons of the data's README. One of them is good, behind a byte order mark; the test lists of version 6 with a part removed were
/// not signed again.
#[test]
fn altered_lists_are_refused_with_their_reason() {
    let altered = "line 5615: the list was altered after it was signed";
    let expected = [
        ("CZ_broken-sig", altered),
        ("CZ_no-sig", "the list is not signed"),
        ("CZ_two-sigs", "line 5616: a second signature"),
        (
            "eu-lotl_broken-sig",
            "line 2058: the list was altered after",
        ),
        (
            "eu-lotl_non-compliant",
            "line 2032: the list was altered after",
        ),
        ("eu-lotl_not-parsable", "line 2056: not well-formed"),
        ("tl_pivot_247_mp_with-bom", ""),
        ("fi-v6-no-service-information", "the list was altered after"),
        ("fi-v6-no-tsp-information", "the list was altered after"),
    ];
    let lists = [real_lists("altered"), real_lists("v6")].concat();
    for (name, reason) in expected {
        let Some((_, bytes)) = lists.iter().find(|(file, _)| file == name) else {
            continue;
        };
        let found = judge(bytes, &own_signers(bytes)).err();
        let found = found.map(|refusal| refusal.to_string()).unwrap_or_default();
        let is_expected = found.contains(reason) && found.is_empty() == reason.is_empty();
        assert!(is_expected, "{name}: {found:?}, not {reason:?}");
    }
}
