//! Signatures that verify, of another profile: each would be an opening, or at least another reading. And other signers.

use super::{LIST, assert_refused, judge};
use crate::minting::{Mint, Signer};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::hash::{MessageDigest, hash};
use std::slice;

const EXCLUSIVE: &str = r#"<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>"#;
const ENVELOPED: &str =
    r#"<ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>"#;
const WHOLE: &str = r#"Id="whole" URI="""#;

/// A part of the signature, another for it, and the reason of the refusal.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "/2001/10/xml-exc-c14n#\"/><ds:Sig",
        "/TR/2001/REC-xml-c14n-20010315\"/><ds:Sig",
        "only http",
    ),
    (
        "xml-exc-c14n#\"/><ds:Sig",
        "xml-exc-c14n#WithComments\"/><ds:Sig",
        "only http",
    ),
    ("rsa-sha512", "rsa-md5", "the signature algorithm"),
    (
        "2001/04/xmldsig-more#rsa-sha512",
        "2000/09/xmldsig#rsa-sha1",
        "the signature algorithm",
    ),
    (
        "2001/04/xmldsig-more#rsa-sha512",
        "2001/04/xmldsig-more#hmac-sha512",
        "the signature algorithm",
    ),
    (
        "2001/04/xmlenc#sha512",
        "2000/09/xmldsig#sha1",
        "the digest",
    ),
    (
        "</ds:Signature>",
        "<ds:Object><x>unsigned</x></ds:Object></ds:Signature>",
        "which this profile has not",
    ),
    (WHOLE, "Id=\"whole\" URI=\"#other\"", "not the root"),
    (
        WHOLE,
        "Id=\"whole\" URI=\"http://example.com/\"",
        "not the root",
    ),
    (WHOLE, "Id=\"whole\"", "not the root"),
    (WHOLE, "Id=\"whole\" URI=\"#xpointer(/)\"", "not the root"),
    (
        WHOLE,
        "Id=\"whole\" Type=\"http://www.w3.org/2000/09/xmldsig#Manifest\" URI=\"\"",
        "of the type",
    ),
    (
        "01903#SignedProperties\" URI=\"#p",
        "01903#SignedProperties\" URI=\"#q",
        "not those of this signature",
    ),
    (
        "Type=\"http://uri.etsi.org/01903#SignedProperties\" ",
        "",
        "no reference to SignedProperties",
    ),
    (
        WHOLE,
        "Id=\"whole\" Type=\"http://uri.etsi.org/01903#SignedProperties\" URI=\"\"",
        "a second reference to SignedProperties",
    ),
    (
        "Target=\"#minted\"",
        "Target=\"#other\"",
        "of another signature",
    ),
    (" Id=\"minted\"", "", "without Id"),
    ("SigningCertificateV2>", "SigningCertificateV3>", "neither"),
    (
        "<ds:KeyInfo>",
        "<ds:KeyInfo><ds:RetrievalMethod URI=\"http://example.com/\"/>",
        "RetrievalMethod in KeyInfo",
    ),
];

#[test]
fn another_profile_is_refused() {
    let signer = Signer::rsa("signer", 2048);
    let mint = Mint::new(&signer);
    let template = mint.with_template(LIST);
    let prefixes = r#"<ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="a"/>"#;
    let with_prefixes = EXCLUSIVE.replace("/>", &format!(">{prefixes}</ds:Transform>"));
    let method = EXCLUSIVE.replace("Transform", "CanonicalizationMethod");
    let method_with_prefixes = with_prefixes.replace("Transform", "CanonicalizationMethod");
    let both = format!("{ENVELOPED}{EXCLUSIVE}");
    let swapped = format!("{EXCLUSIVE}{ENVELOPED}");
    let xpath = format!(
        "{both}<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xpath-19991116\"><ds:XPath>false()</ds:XPath></ds:Transform>"
    );
    let reference = template.split("<ds:Reference ").nth(1).unwrap();
    let third = format!(
        "<ds:Reference {}</ds:SignedInfo>",
        reference.replace("whole", "third")
    );
    let composed = [
        (
            method.as_str(),
            method_with_prefixes.as_str(),
            "may have no parameters",
        ),
        (EXCLUSIVE, &with_prefixes, "may have no parameters"),
        (&both, &swapped, "only http"),
        (&both, ENVELOPED, "no transform"),
        (&both, EXCLUSIVE, "only http"),
        (&both, &xpath, "a transform that this profile has not"),
        ("</ds:SignedInfo>", &third, "which this profile has not"),
    ];
    for (from, to, reason) in OTHERS.iter().copied().chain(composed) {
        assert!(template.contains(from), "{from}");
        let filled = mint.fill(&template.replace(from, to));
        assert_refused(&filled, slice::from_ref(&signer.certificate), reason);
    }
}

/// A list signed by another, or with a certificate in KeyInfo that is not the signer's.
#[test]
fn another_signer_is_refused() {
    let signer = Signer::rsa("signer", 2048);
    let other = Signer::rsa("other", 2048);
    let [pinned, stranger] = [&signer, &other].map(|it| slice::from_ref(&it.certificate));
    let list = String::from_utf8(Mint::new(&signer).sign(LIST)).unwrap();
    assert_refused(&list, &[], "none of the 0 signers");
    assert_refused(&list, stranger, "KeyInfo has CN=signer");
    let base64 = |it: &Signer| STANDARD.encode(it.certificate.der());
    let digest = |it: &Signer| {
        let digest = hash(MessageDigest::sha512(), it.certificate.der());
        STANDARD.encode(digest.unwrap())
    };
    // KeyInfo names a pinned signer, whose key did not sign.
    let swapped = list.replace(&base64(&signer), &base64(&other));
    assert_refused(&swapped, stranger, "of another certificate");
    // All names the pinned signer, but the key is another's.
    let mint = Mint::new(&other);
    let named = mint
        .with_template(LIST)
        .replace(&base64(&other), &base64(&signer));
    let forged = mint.fill(&named);
    assert_refused(&forged, pinned, "of another certificate");
    let forged = mint.fill(&named.replace(&digest(&other), &digest(&signer)));
    assert_refused(&forged, pinned, "does not verify by the signer's key");
}

/// Certificates of the signer's chain may stand in KeyInfo; those of two pinned signers may not.
#[test]
fn other_certificates_in_key_info() {
    let signer = Signer::rsa("signer", 2048);
    let other = Signer::rsa("other", 2048);
    let list = String::from_utf8(Mint::new(&signer).sign(LIST)).unwrap();
    let chain = format!(
        "<ds:X509Certificate>{}</ds:X509Certificate><ds:X509Certificate>",
        STANDARD.encode(other.certificate.der())
    );
    let list = list.replace("<ds:X509Certificate>", &chain);
    let pinned = slice::from_ref(&signer.certificate);
    assert_eq!(judge(list.as_bytes(), pinned).err(), None);
    let two = [signer.certificate.clone(), other.certificate.clone()];
    assert_refused(&list, &two, "second certificate of a pinned signer");
}
