//! Signature wrapping: the signed list is moved, and another stands where a reader looks.

use super::{judge, minted};

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
