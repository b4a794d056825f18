//! Hostile lists: every place that matters altered, wrapping, algorithms, keys, and XML that another parser would read otherwise.

use super::{
    judge,
    mutate::{Mutant, Outline, Random, scramble},
    own_signers, real_lists,
};
use crate::{
    Certificate,
    minting::{Mint, Signer, canonical},
};

/// A small list that the tests sign.
pub(super) const LIST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<TrustServiceStatusList xmlns="http://uri.etsi.org/02231/v2#" xmlns:a="http://uri.etsi.org/02231/v2/additionaltypes#" Id="list" TSLTag="http://uri.etsi.org/19612/TSLTag">
  <SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier><TSLSequenceNumber>7</TSLSequenceNumber></SchemeInformation>
  <TrustServiceProviderList><TSPName xml:lang="en">Good &amp; Sons</TSPName><a:MimeType>text/xml</a:MimeType></TrustServiceProviderList>
</TrustServiceStatusList>
"#;

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
    for (name, bytes) in lists {
        let signers = own_signers(&bytes);
        let signed = canonical(&String::from_utf8(bytes.clone()).unwrap(), None);
        let mut accepted = 0;
        for _ in 0..2_000 {
            let altered = scramble(&bytes, &mut random);
            if judge(&altered, &signers).is_ok() {
                let text = String::from_utf8(altered).unwrap();
                assert_eq!(canonical(&text, None), signed, "{name}: {text}");
                accepted += 1;
            }
        }
        println!("{name}: 2000 random changes, {accepted} of which change nothing that is signed");
        assert!(accepted < 100, "{name}: {accepted}");
    }
}

/// Asserts that a list is refused, for a reason with these words.
fn assert_refused(list: &str, signers: &[Certificate], expected: &str) {
    let found = judge(list.as_bytes(), signers);
    let reason = found.expect_err(expected).to_string();
    assert!(
        reason.contains(expected),
        "{expected:?} is not in {reason:?}"
    );
}

/// The signed list of the tests, and its signer.
fn minted(root: &'static str) -> (String, Vec<Certificate>) {
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

/// What canonicalization does not see is accepted: the same list, written otherwise.
#[test]
fn the_same_list_written_otherwise_is_accepted() {
    let (list, signers) = minted("");
    let same = [
        ("Good &amp; Sons", "Good &#38; Sons"),
        ("Good &amp; Sons", "<![CDATA[Good & Sons]]>"),
        ("Good &amp; Sons", "G&#x6f;od &amp;<![CDATA[ Sons]]>"),
        (
            ">\n  <SchemeInformation>",
            ">\r\n  <!-- a comment --><SchemeInformation>",
        ),
        ("<TSPName xml:lang=\"en\">", "<TSPName\n xml:lang = 'en' >"),
        ("xmlns:a=", "xmlns:unused=\"urn:unused\" xmlns:a="),
        ("</TSPName>", "</TSPName\n>"),
        ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", ""),
        (
            "encoding=\"UTF-8\"?>",
            "encoding='utf-8' standalone='yes'?><!-- before -->",
        ),
        ("<?xml ", "\u{feff}<?xml "),
    ];
    for (from, to) in same {
        assert!(list.contains(from), "{from}");
        let written = list.replacen(from, to, 1);
        assert_eq!(judge(written.as_bytes(), &signers).err(), None, "{to}");
    }
}

/// Another reader may see something else in these.
#[test]
fn ambiguous_xml_is_refused() {
    let (list, signers) = minted("");
    let dtd = "<!DOCTYPE TrustServiceStatusList [<!ENTITY e \"Evil\">]><TrustServiceStatusList ";
    let deep = format!("{}{}</TSPName>", "<b>".repeat(70), "</b>".repeat(70));
    let attributes: String = (0..40).map(|number| format!(" a{number}=\"\"")).collect();
    let refused = [
        ("<TrustServiceStatusList ", dtd, "document type declaration"),
        (
            "<TrustServiceStatusList ",
            "<?xml-stylesheet href=\"x\"?><TrustServiceStatusList ",
            "processing instruction",
        ),
        ("Good &amp; Sons", "Good &e; Sons", "unknown entity"),
        ("xml:lang=\"en\"", "xml:lang=\"&e;\"", "unknown entity"),
        ("Good &amp; Sons", "Good &#0; Sons", "unknown entity"),
        ("Good &amp; Sons", "Good &#xd800; Sons", "unknown entity"),
        ("Good &amp; Sons", "Good &#+38; Sons", "unknown entity"),
        (
            "Good &amp; Sons",
            "Good<!-- --> &amp; Sons",
            "comment inside text",
        ),
        (
            "Good &amp; Sons",
            "Good <?p?>&amp; Sons",
            "processing instruction",
        ),
        ("Good &amp; Sons", "Good ]]> Sons", "`]]>`"),
        (
            "Good &amp; Sons",
            "Good \u{1} Sons",
            "character that XML does not allow",
        ),
        ("Good &amp; Sons", "Good & Sons", "not well-formed"),
        (
            "version=\"1.0\"",
            "version=\"1.1\"",
            "another version of XML",
        ),
        ("\"UTF-8\"", "\"ISO-8859-1\"", "another encoding"),
        ("<?xml ", " <?xml ", "not at the beginning"),
        (
            "xml:lang=\"en\"",
            "xml:lang=\"en\" xml:lang=\"de\"",
            "two attributes",
        ),
        ("xml:lang=\"en\"", "xml:lang=\"<\"", "`<`"),
        ("xml:lang=\"en\"", "xml:lang=en", "without quotes"),
        ("xml:lang=\"en\"", "b=\"\"xml:lang=\"en\"", "no white space"),
        ("xml:lang=\"en\"", "b:lang=\"en\"", "not declared"),
        ("xmlns:a=", "xmlns:b=\"\" xmlns:a=", "reserves"),
        ("xmlns:a=", "xmlns:xml=\"urn:x\" xmlns:a=", "prefix xml"),
        ("xmlns:a=", "xmlns:b=\"relative\" xmlns:a=", "relative"),
        ("xmlns:a=", "xmlns:a=\"urn:x\" xmlns:a=", "two declarations"),
        ("<a:MimeType>", "<a:b:MimeType>", "a name"),
        ("</TSPName>", "</a:MimeType>", "not well-formed"),
        ("</TSPName>", deep.as_str(), "deeper than 64"),
        (
            "<TSPName ",
            &format!("<TSPName {attributes} "),
            "over 32 attributes",
        ),
        (
            "</TrustServiceStatusList>\n",
            "</TrustServiceStatusList><x/>",
            "second root",
        ),
        (
            "</TrustServiceStatusList>\n",
            "</TrustServiceStatusList>x",
            "outside of the root",
        ),
        ("</TrustServiceStatusList>\n", "", "the file ends within"),
        (
            "<TSPName xml:lang=\"en\">",
            "<TSPName Id=\"list\" xml:lang=\"en\">",
            "is there twice",
        ),
        (
            "<TSPName xml:lang=\"en\">",
            "<TSPName xml:id=\"list\" xml:lang=\"en\">",
            "is there twice",
        ),
    ];
    for (from, to, reason) in refused {
        assert!(list.contains(from), "{from}");
        assert_refused(&list.replacen(from, to, 1), &signers, reason);
    }
    let wide: Vec<u8> = list.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let reason = judge(&wide, &signers).unwrap_err().to_string();
    assert!(
        reason.contains("XML does not allow") || reason.contains("UTF-8"),
        "{reason}"
    );
    for end in (0..list.trim_end().len()).step_by(97) {
        assert!(judge(&list.as_bytes()[..end], &signers).is_err(), "{end}");
    }
}

/// Signatures that verify, of another profile: each would be an opening, or at least another reading.
#[test]
fn another_profile_is_refused() {
    let signer = Signer::rsa("signer", 2048);
    let mint = Mint::new(&signer);
    let signers = [signer.certificate.clone()];
    let template = mint.with_template(LIST);
    let exclusive = r#"<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>"#;
    let enveloped =
        r#"<ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>"#;
    let c14n =
        r#"<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>"#;
    let prefixes = r#"<ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="a"/>"#;
    let with_prefixes = exclusive.replace("/>", &format!(">{prefixes}</ds:Transform>"));
    let c14n_with_prefixes =
        c14n.replace("/>", &format!(">{prefixes}</ds:CanonicalizationMethod>"));
    let both = format!("{enveloped}{exclusive}");
    let swapped = format!("{exclusive}{enveloped}");
    let xpath = format!(
        "{both}<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xpath-19991116\"><ds:XPath>false()</ds:XPath></ds:Transform>"
    );
    let object = "<ds:Object><x>unsigned</x></ds:Object></ds:Signature>";
    let reference = template.split("<ds:Reference ").nth(1).unwrap();
    let third = format!(
        "<ds:Reference {}</ds:SignedInfo>",
        reference.replace("whole", "third")
    );
    let refused: Vec<(&str, &str, &str)> = vec![
        (c14n, &c14n_with_prefixes, "may have no parameters"),
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
        (exclusive, &with_prefixes, "may have no parameters"),
        (&both, &swapped, "only http"),
        (&both, enveloped, "no transform"),
        (&both, exclusive, "only http"),
        (&both, &xpath, "a transform that this profile has not"),
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
        ("</ds:SignedInfo>", &third, "which this profile has not"),
        ("</ds:Signature>", object, "which this profile has not"),
        (
            "Id=\"whole\" URI=\"\"",
            "Id=\"whole\" URI=\"#other\"",
            "not the root",
        ),
        (
            "Id=\"whole\" URI=\"\"",
            "Id=\"whole\" URI=\"http://example.com/\"",
            "not the root",
        ),
        ("Id=\"whole\" URI=\"\"", "Id=\"whole\"", "not the root"),
        (
            "Id=\"whole\" URI=\"\"",
            "Id=\"whole\" URI=\"#xpointer(/)\"",
            "not the root",
        ),
        (
            "Id=\"whole\" URI",
            "Id=\"whole\" Type=\"http://www.w3.org/2000/09/xmldsig#Manifest\" URI",
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
    for (from, to, reason) in refused {
        assert!(template.contains(from), "{from}");
        let altered = template.replace(from, to);
        // Some of these have no element to digest, and are refused before that.
        let filled = std::panic::catch_unwind(|| mint.fill(&altered)).unwrap_or(altered);
        assert_refused(&filled, &signers, reason);
    }
}

/// A list signed by another, or with a certificate in KeyInfo that is not the signer's.
#[test]
fn another_signer_is_refused() {
    let signer = Signer::rsa("signer", 2048);
    let other = Signer::rsa("other", 2048);
    let list = String::from_utf8(Mint::new(&signer).sign(LIST)).unwrap();
    assert_refused(&list, &[], "none of the 0 signers");
    assert_refused(&list, &[other.certificate.clone()], "KeyInfo has CN=signer");
    // KeyInfo names a pinned signer, whose key did not sign.
    let pem = |it: &Signer| {
        it.certificate
            .pem()
            .lines()
            .filter(|it| !it.starts_with("--"))
            .collect::<String>()
    };
    let swapped = list.replace(&pem(&signer), &pem(&other));
    assert_refused(
        &swapped,
        &[other.certificate.clone()],
        "of another certificate",
    );
    // The same with the digest of the pinned signer: one that holds no key of his.
    let forged = Mint {
        signer: &other,
        ..Mint::new(&other)
    };
    let template = forged
        .with_template(LIST)
        .replace(&pem(&other), &pem(&signer));
    let forged = forged.fill(&template);
    assert_refused(
        &forged,
        &[signer.certificate.clone()],
        "of another certificate",
    );
    let both = list.replace(
        "<ds:X509Certificate>",
        &format!(
            "<ds:X509Certificate>{}</ds:X509Certificate><ds:X509Certificate>",
            pem(&other)
        ),
    );
    assert_eq!(
        judge(both.as_bytes(), &[signer.certificate.clone()]).err(),
        None
    );
    let two = [signer.certificate.clone(), other.certificate.clone()];
    assert_refused(&both, &two, "second certificate of a pinned signer");
}

/// Signature wrapping: the signed list is moved, and another stands where a reader looks. After Somorovsky and others, "On Breaking SAML"
/// (2012), with the reference by Id that makes them possible, and by the empty URI.
#[test]
fn wrapped_lists_are_refused() {
    for root in ["", "#list"] {
        let (list, signers) = minted(root);
        for (name, wrapped) in wrapped(&list) {
            let found = judge(wrapped.as_bytes(), &signers);
            println!("{root:?} {name}: {found:?}");
            assert!(found.is_err(), "{root:?} {name}");
        }
    }
}

/// Wrapped forms of a signed list.
pub(super) fn wrapped(list: &str) -> Vec<(&'static str, String)> {
    let (head, body) = list.split_once("?>").unwrap();
    let body = body.trim();
    let signature = &body[body.find("<ds:Signature").unwrap()..body.rfind("</Trust").unwrap()];
    let unsigned = body.replace(signature, "");
    let evil = unsigned.replace("Good", "Evil");
    let nameless = evil.replace(" Id=\"list\"", "");
    let into = |outer: &str, inner: &str| {
        let at = outer.rfind("</Trust").unwrap();
        format!("{head}?>{}{inner}{}", &outer[..at], &outer[at..])
    };
    let in_object = |good: &str| {
        signature.replace(
            "</ds:Signature>",
            &format!("<ds:Object>{good}</ds:Object></ds:Signature>"),
        )
    };
    let in_unsigned = |good: &str| {
        let properties = format!(
            "<xades:UnsignedProperties>{good}</xades:UnsignedProperties></xades:QualifyingProperties>"
        );
        signature.replace("</xades:QualifyingProperties>", &properties)
    };
    let in_key_info =
        |good: &str| signature.replace("</ds:KeyInfo>", &format!("{good}</ds:KeyInfo>"));
    let decoy = "<xades:SignedProperties Id=\"decoy\"><xades:SignedSignatureProperties/></xades:SignedProperties>";
    let start = signature.find("<xades:SignedProperties ").unwrap();
    let end =
        signature.find("</xades:SignedProperties>").unwrap() + "</xades:SignedProperties>".len();
    let properties = &signature[start..end];
    vec![
        ("the good list in the evil one, before the signature", into(&nameless, &format!("{unsigned}{signature}"))),
        ("the good list in the evil one, behind the signature", into(&nameless, &format!("{signature}{unsigned}"))),
        ("the good list with its signature in the evil one", into(&nameless, body)),
        ("the good list with its signature in an evil one of the same Id", into(&evil, body)),
        ("the good list in an Object of the signature", into(&nameless, &in_object(&unsigned))),
        ("the good list in an Object, the same Id outside", into(&evil, &in_object(&unsigned))),
        ("the good list in unsigned properties", into(&nameless, &in_unsigned(&unsigned))),
        ("the good list in unsigned properties, the same Id outside", into(&evil, &in_unsigned(&unsigned))),
        ("the good list in KeyInfo", into(&nameless, &in_key_info(&unsigned))),
        ("the evil list in the good one", into(&unsigned, &format!("{nameless}{signature}"))),
        ("the evil list behind the signature", into(&unsigned, &format!("{signature}{nameless}"))),
        ("two signatures", into(&unsigned, &format!("{signature}{}", signature.replace("minted", "again").replace("properties", "others")))),
        ("the signature in another element", into(&unsigned, &format!("<x>{signature}</x>"))),
        ("the signature first", format!("{head}?>{}", unsigned.replacen('>', &format!(">{signature}"), 1))),
        ("decoy of signed properties before the good", into(&unsigned, &signature.replace(properties, &format!("{decoy}{properties}")))),
        ("decoy of signed properties, the good in unsigned ones", into(&unsigned, &signature.replace(properties, &format!("{decoy}<xades:UnsignedProperties>{properties}</xades:UnsignedProperties>")))),
        ("the good signed properties beside the signature", into(&unsigned, &format!("{properties}{}", signature.replace(properties, decoy)).replace("<xades:SignedProperties Id=\"p", "<xades:SignedProperties xmlns:xades=\"http://uri.etsi.org/01903/v1.3.2#\" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" Id=\"p"))),
        ("another namespace of the root", list.replace("02231/v2#", "02231/v3#")),
        ("another namespace of the signature", list.replace("xmldsig#\" Id", "xmldsig2#\" Id")),
        ("another root", list.replace("TrustServiceStatusList", "TrustServiceStatusLists")),
    ]
}
