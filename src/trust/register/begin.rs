//! What was downloaded in place of a register, by its first bytes (ERR-10).

/// What a file is that is neither JSON nor CSV; `None` if its first bytes do not tell.
pub(super) fn other(bytes: &[u8]) -> Option<&'static str> {
    let begin = bytes.trim_ascii_start();
    Some(match bytes {
        [] => "it is empty",
        [0x1f, 0x8b, ..] => "it is a gzip archive: unpack the file in it",
        [0xef, 0xbb, 0xbf, ..] => {
            "it begins with a byte order mark (U+FEFF): save it as UTF-8 without one"
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16: save it as UTF-8",
        _ if is_html(begin) => {
            "it is a page of HTML, perhaps of a portal or a proxy: download the export again"
        }
        _ if begin.starts_with(b"<") => "it is XML: the export in JSON is read",
        _ => return None,
    })
}

fn is_html(begin: &[u8]) -> bool {
    let tags = [
        &b"<!doctype html"[..],
        b"<html",
        b"<head",
        b"<body",
        b"<!--",
    ];
    tags.iter().any(|tag| {
        let found = begin.get(..tag.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(tag))
    })
}
