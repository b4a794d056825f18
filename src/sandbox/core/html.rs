//! HTML for a browser without scripts: escaped text in one frame.
//!
//! Invariants: all external text is escaped; an answer is never cached, and browsers send no Referer, because the link to the
//! page contains a token (ERR-7). No external resource is loaded.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::fmt::{self, Display};

/// `form-action` is omitted: browsers apply it to redirects after a form too, and those go to TPPs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'";

const STYLE: &str = "body{font:1.1rem/1.5 sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem}\
fieldset{margin:1rem 0}label{display:block}input[type=text]{font:inherit;padding:.3rem;letter-spacing:.1em}\
button{font:inherit;padding:.5rem 1.2rem;margin:1rem 1rem 0 0}dt{font-weight:bold}dd{margin:0 0 .6rem}\
[role=alert]{border-left:.3rem solid #b00;padding-left:.7rem}";

/// Text escaped for use between tags and in an attribute in double quotes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                other => write!(formatter, "{other}")?,
            }
        }
        Ok(())
    }
}

/// A page. `content` is HTML, `title` is text.
pub(super) fn page(status: StatusCode, title: &str, content: &str) -> Response<Body> {
    let title = Escaped(title);
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n{content}</main>\n</body>\n</html>\n"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    seal(response.headers_mut());
    response
}

/// 303: the browser goes to the TPP with a GET. `None` if the URI is not a valid header value.
pub(super) fn redirect(uri: &str) -> Option<Response<Body>> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let uri = HeaderValue::from_str(uri).ok()?;
    response.headers_mut().insert(header::LOCATION, uri);
    seal(response.headers_mut());
    Some(response)
}

fn seal(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let escaped = Escaped(r#"<a href="x" title='y'>&</a>æ"#).to_string();
        assert_eq!(
            escaped,
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;&lt;/a&gt;æ"
        );
    }

    //= ERR-7 accepted
    #[test]
    fn neither_page_nor_redirect_is_kept_or_told_of() {
        let redirect = redirect("https://t.example/?a=b").unwrap();
        assert_eq!(redirect.status(), 303);
        for answer in [page(StatusCode::OK, "t", ""), redirect] {
            let headers = answer.headers();
            assert_eq!(headers["cache-control"], "no-store");
            assert_eq!(headers["referrer-policy"], "no-referrer");
        }
        assert!(super::redirect("https://t.example/\n").is_none());
    }
}
