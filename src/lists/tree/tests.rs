//! What a tree gives of its document.

use super::*;

fn parse(text: &str) -> Document {
    Document::parse(text.as_bytes().to_vec()).unwrap()
}

fn refusal(text: &str) -> String {
    let refused = Document::parse(text.as_bytes().to_vec());
    refused.unwrap_err().to_string()
}

#[test]
fn names_attributes_and_text_are_resolved() {
    let document = parse(
        "\u{feff}<?xml version=\"1.0\"?>\n<l:list xmlns:l=\"urn:l\" xmlns=\"urn:d\" a=\"1&#9;2\tx\" l:a=\"3\">\n  <name xml:lang=\"en\">A &amp; <![CDATA[<B>]]>\r\nC</name>\n  <l:name/>\n</l:list>",
    );
    let root = document.root();
    assert!(root.is("urn:l", "list") && !root.is("urn:d", "list"));
    assert_eq!(root.line(), 2);
    assert_eq!(root.attribute(None, "a"), Some("1\t2 x"));
    assert_eq!(root.attribute(Some("urn:l"), "a"), Some("3"));
    assert_eq!(root.attribute(Some("urn:d"), "a"), None);
    let children: Vec<_> = root
        .children()
        .map(|it| (it.namespace(), it.line()))
        .collect();
    assert_eq!(children, [("urn:d", 3), ("urn:l", 5)]);
    let name = root.child("urn:d", "name").unwrap();
    assert_eq!(name.text(), "A & <B>\nC");
    assert_eq!(name.attribute(Some(node::XML), "lang"), Some("en"));
    assert_eq!(root.child("urn:l", "name").unwrap().text(), "");
    assert_eq!(root.descendants().count(), 3);
}

#[test]
fn a_doubled_child_is_not_taken_for_one() {
    let document = parse("<a>\n<b/>\n<b/><c/></a>");
    let root = document.root();
    assert_eq!(root.child("", "b"), None);
    let second = root.optional("", "b").unwrap_err();
    assert_eq!(second.to_string(), "line 3: a second b");
    assert_eq!(root.optional("", "d"), Ok(None));
    let missing = root.required("", "d").unwrap_err();
    assert_eq!(missing.to_string(), "line 1: no d in a");
    assert!(root.required("", "c").is_ok());
}

#[test]
fn a_refusal_says_where() {
    assert_eq!(
        refusal("<a>\n<b>\n<!DOCTYPE a>"),
        "line 3: a document type declaration (DTD)"
    );
    assert_eq!(refusal("<a>\n\n<b/>&x;</a>"), "line 3: an unknown entity");
    assert_eq!(refusal(""), "line 1: no element: this is no XML document");
    assert!(refusal("<a>\n<b></a>").starts_with("line 2: not well-formed"));
    let not_utf8 = Document::parse(b"<a>\xff</a>".to_vec()).unwrap_err();
    assert_eq!(not_utf8.to_string(), "not UTF-8: byte 3 of the file");
}

#[test]
fn sizes_are_bounded() {
    let long = Document::parse(vec![b' '; MAX_BYTES + 1]).unwrap_err();
    assert_eq!(long.to_string(), "the file is longer than 16 MiB");
    let many = format!("<a>{}</a>", "<b/>".repeat(400_001));
    assert_eq!(refusal(&many), "line 1: over 400 000 nodes");
    let deep = "<a>".repeat(65);
    assert_eq!(refusal(&deep), "line 1: elements nested deeper than 64");
    let declared: String = (0..31)
        .map(|number| format!(" xmlns:p{number}=\"urn:x\""))
        .collect();
    let scopes = format!("<a{declared}><a{declared}><a{declared}>");
    assert_eq!(
        refusal(&scopes),
        "line 1: over 64 declarations of namespaces in scope"
    );
}

/// A line is found in any block, and the index of lines stays small.
#[test]
fn lines_are_counted_in_blocks() {
    let text = format!(
        "<a>{}<b/>{}<c/></a>",
        "\n".repeat(10_000),
        "é\n".repeat(5_000)
    );
    let document = parse(&text);
    let found: Vec<_> = document.root().children().map(|it| it.line()).collect();
    assert_eq!(found, [10_001, 15_001]);
    assert_eq!(document.root().line(), 1);
    let ends = format!("<a>{}", "\n".repeat(4_096 * 3 - 3));
    assert!(
        refusal(&ends).starts_with("line 12286: the file ends"),
        "{}",
        refusal(&ends)
    );
}

/// A node is small: a list of 5 MB has about 110 000.
#[test]
fn nodes_are_small() {
    assert!(size_of::<Node>() <= 48, "{}", size_of::<Node>());
    assert!(size_of::<Attribute>() <= 48, "{}", size_of::<Attribute>());
}
