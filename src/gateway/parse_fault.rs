//! The fault of a head that the HTTP layer cannot read (ERR-8, ERR-10): one cause, with the header's place where the library tells it.
//!
//! Deliberately not here: a value of the head. The library's error holds a part of the head; only the place and the kind of one character
//! are taken out of it.

use crate::interface::{
    Fault, Reason, Refusal, character,
    headers::{self, RequestId},
};
use http::HeaderValue;
use pingora::Error;

/// The refusal of a head that is not HTTP.
pub(super) fn refusal(error: &Error) -> Refusal {
    let text = text(error);
    Fault::request(Reason::MalformedRequest, text).into()
}

/// The refusal of CONNECT, whose target is not a path (RFC 9112, section 3.2.3).
pub(super) fn connect() -> Refusal {
    let text = "the method CONNECT is not taken: its target is no path";
    Fault::request(Reason::MalformedRequest, text).into()
}

/// The X-Request-ID of a head that is not HTTP, if it can be read without doubt (ERR-5): in the part of the head that the library shows, on
/// a line of its own that ends there, once, and without a character that the library escapes.
pub(super) fn request_id(error: &Error) -> Option<RequestId> {
    let context = error.context.as_ref()?;
    RequestId::parse(&HeaderValue::from_str(shown_id(context.as_str())?).ok()?)
}

fn shown_id(context: &str) -> Option<&str> {
    // The last part may be cut off. A line that begins with a blank belongs to the line before it.
    let (lines, _) = context.rsplit_once("\\r\\n")?;
    let mut lines = lines.split("\\r\\n").skip(1).peekable();
    let mut found = None;
    while let Some(line) = lines.next() {
        let (name, value) = line.split_once(':').unwrap_or_default();
        if !name.eq_ignore_ascii_case(headers::X_REQUEST_ID.name.as_str()) {
            continue;
        }
        let goes_on = lines
            .peek()
            .is_some_and(|next| next.starts_with([' ', '\\']));
        if found.is_some() || goes_on || value.contains('\\') {
            return None;
        }
        found = Some(value.trim_matches(' '));
    }
    found
}

fn text(error: &Error) -> String {
    let context = error
        .context
        .as_ref()
        .map_or("", |context| context.as_str());
    // What httparse and pingora say, which are constants of theirs.
    let cause = error.root_cause().to_string();
    // Where the head cannot be parsed, the context shows it, with whatever headers it has.
    let is_head = context.starts_with("buf: ");
    if !is_head && context.contains("Transfer-Encoding") {
        return match context.contains("HTTP/1.0") {
            true => "HTTP/1.0 has no Transfer-Encoding".to_owned(),
            false => "the value of Transfer-Encoding is not chunked alone".to_owned(),
        };
    }
    if !is_head && context.contains("Content-Length") {
        return "the value of Content-Length is no number, or the header stands more than once"
            .to_owned();
    }
    let text = match cause.as_str() {
        "invalid header name" => return header_name(context),
        "invalid header value" => {
            "the value of a header has a control character, or the line of a header has no colon"
        }
        "invalid new line" => "a line of the head ends in a CR without an LF behind it",
        "invalid HTTP version" => "the request line does not end with HTTP/1.1 or HTTP/1.0",
        "invalid token" => {
            "the request line is not a method, a target and a version, with one blank between them"
        }
        "too many headers" => "the head has more headers than are read",
        _ => "the head is not one of HTTP/1.1",
    };
    text.to_owned()
}

/// The place of the first name that is no token: its line from 1, which is the request line, and its character.
fn header_name(context: &str) -> String {
    // The library shows the head as a Rust string.
    let lines = context.split("\\r\\n").zip(1_usize..);
    let odd = lines.skip(1).find_map(|(line, number)| {
        let (name, _) = line.split_once(':').unwrap_or((line, ""));
        let mut characters = name.char_indices();
        let odd = characters.find(|(_, found)| !is_of_name(*found));
        odd.map(|(at, found)| (number, found, at))
    });
    match odd {
        Some((number, found, at)) => format!(
            "the name of the header in line {number} of the head has {}, at its byte {at}; a name has letters of ASCII, digits and hyphens",
            character::name(found)
        ),
        None => "the name of a header has a character that no name has, or no name stands before its colon".to_owned(),
    }
}

fn is_of_name(found: char) -> bool {
    found.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ERR-5 accepted
    #[test]
    fn an_id_is_read_where_it_stands_without_doubt() {
        let buf = |fields: &str| format!(r#"buf: "GET / HTTP/1.1\r\nHost: a\r\n{fields}"#);
        for good in [
            r#"X-Request-ID: 7-a\r\nx-ı: 1\r\n\r\n""#,
            r#"x-ı: 1\r\nx-request-id:7-a\r\nDate: x"#,
            r#"a b: 1\r\nX-REQUEST-ID: 7-a \r\n\r\n"#,
        ] {
            assert_eq!(shown_id(&buf(good)), Some("7-a"), "{good}");
        }
        for bad in [
            r#"x-ı: 1\r\n\r\n""#,
            r#"X-Request-ID: 7-a"#,
            r#"X-Request-ID: 7-a\r\nX-Request-ID: 7-b\r\n\r\n"#,
            r#"X-Request-ID: 7-a\r\n 7-b\r\n\r\n"#,
            r#"X-Request-ID: 7-a\r\n\t7-b\r\n\r\n"#,
            r#"X-Request-ID: 7\"a\r\n\r\n"#,
            r#"X-Request-ID: 7\nDate: 7\r\n\r\n"#,
            r#"X-Request-ID : 7-a\r\n\r\n"#,
        ] {
            assert_eq!(shown_id(&buf(bad)), None, "{bad}");
        }
        assert_eq!(shown_id(r#"buf: "X-Request-ID: 7-a\r\n\r\n"#), None);
    }

    //= ERR-10 refused
    #[test]
    fn the_name_of_a_header_is_found_by_its_line() {
        let context = r#"buf: "GET / HTTP/1.1\r\nHost: a\r\nx-request-ıd: 7\r\n\r\n""#;
        assert!(
            header_name(context)
                .starts_with("the name of the header in line 3 of the head has U+0131, which is outside ASCII, at its byte 10"),
            "{}",
            header_name(context)
        );
        let blank = r#"buf: "GET / HTTP/1.1\r\nPSU-ID : 01010112345\r\n\r\n""#;
        let said = header_name(blank);
        assert!(
            said.contains("line 2 of the head has a blank, at its byte 6"),
            "{said}"
        );
        assert!(!said.contains("010101"), "{said}");
    }
}
