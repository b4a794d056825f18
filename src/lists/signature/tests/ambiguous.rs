//! XML that two readers may read in two ways is refused; the same list in another spelling is not.

use super::{assert_refused, judge, minted};

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

/// A part of the list, another for it, and the reason of the refusal.
const AMBIGUOUS: &[(&str, &str, &str)] = &[
    (
        "<TrustServiceStatusList ",
        "<!DOCTYPE TrustServiceStatusList [<!ENTITY e \"Evil\">]><TrustServiceStatusList ",
        "document type declaration",
    ),
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

/// Another reader may see something else in these.
#[test]
fn ambiguous_xml_is_refused() {
    let (list, signers) = minted("");
    let deep = format!("{}{}</TSPName>", "<b>".repeat(70), "</b>".repeat(70));
    let attributes: String = (0..40).map(|number| format!(" a{number}=\"\"")).collect();
    let crowded = format!("<TSPName {attributes} ");
    let refused = AMBIGUOUS.iter().copied().chain([
        ("</TSPName>", deep.as_str(), "deeper than 64"),
        ("<TSPName ", crowded.as_str(), "over 32 attributes"),
    ]);
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
