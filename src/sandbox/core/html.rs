//! HTML for a browser without scripts: the frame of every page, its style sheet, and its headers.
//!
//! Invariants: text is escaped wherever it stands (by maud, unless `PreEscaped` says otherwise, which nothing here does); an
//! answer is never cached, and browsers send no Referer, because the link to the page contains a token (ERR-7). The policy
//! forbids scripts, styles and images of anywhere else, and frames around the page. Deliberately not here: the origins that may frame
//! the SCA page (frames.rs).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

/// `form-action` is omitted: browsers apply it to redirects after a form too, and those go to TPPs.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The part of the policy that forbids frames.
const NO_FRAMES: &str = "frame-ancestors 'none'";

const STYLE: &str = include_str!("html/bank.css");
const MARK: &str = include_str!("html/bank.svg");

/// A page before it is sent.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The language of its texts (RFC 5646).
    pub(super) language: &'static str,
    /// The bank's name.
    pub(super) bank: &'a str,
    /// The heading.
    pub(super) title: &'a str,
    /// The last line of the page.
    pub(super) foot: &'a str,
    /// Whether it has wide tables.
    pub(super) is_wide: bool,
    /// Everything below the heading.
    pub(super) content: Markup,
}

impl Page<'_> {
    /// The answer.
    pub(super) fn answer(self, status: StatusCode) -> Response<Body> {
        let Page {
            language,
            bank,
            title,
            foot,
            is_wide,
            content,
        } = self;
        let page = html! {
            (DOCTYPE)
            html lang=(language) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " – " (bank) }
                    link rel="stylesheet" href="bank.css";
                    link rel="icon" href="bank.svg" type="image/svg+xml";
                }
                body {
                    header { img src="bank.svg" alt="" width="28" height="28"; span { (bank) } }
                    main class=[is_wide.then_some("wide")] { h1 { (title) } (content) }
                    footer { p { (foot) } }
                }
            }
        };
        let mut response = Response::new(Body::from(page.into_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        put(headers, header::CONTENT_TYPE, "text/html; charset=utf-8");
        put(headers, header::CONTENT_LANGUAGE, language);
        put(headers, header::VARY, "Accept-Language");
        seal(headers);
        response
    }
}

/// The policy of a page that these origins may frame, separated by spaces.
pub(super) fn policy(origins: &str) -> String {
    POLICY.replace(NO_FRAMES, &format!("frame-ancestors {origins}"))
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

/// `GET /bank.css`.
pub(super) async fn style() -> Response<Body> {
    asset("text/css; charset=utf-8", STYLE)
}

/// `GET /bank.svg`.
pub(super) async fn mark() -> Response<Body> {
    asset("image/svg+xml", MARK)
}

fn asset(kind: &'static str, content: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    put(headers, header::CONTENT_TYPE, kind);
    put(headers, header::CACHE_CONTROL, "max-age=300");
    put(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn seal(headers: &mut HeaderMap) {
    put(headers, header::CACHE_CONTROL, "no-store");
    put(headers, header::REFERRER_POLICY, "no-referrer");
    put(headers, header::CONTENT_SECURITY_POLICY, POLICY);
    put(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // For browsers that do not know frame-ancestors.
    put(headers, header::X_FRAME_OPTIONS, "DENY");
}

fn put(headers: &mut HeaderMap, name: header::HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str) -> Page<'_> {
        Page {
            language: "en",
            bank: "b",
            title,
            foot: "f",
            is_wide: false,
            content: html! { p { (title) } a href=(title) {} },
        }
    }

    #[tokio::test]
    async fn nothing_from_outside_is_markup() {
        let answer = page(r#"<a href="x">&</a>æ"#).answer(StatusCode::OK);
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await;
        let html = String::from_utf8(body.unwrap().to_vec()).unwrap();
        let escaped = "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;æ";
        assert_eq!(html.matches(escaped).count(), 4, "{html}");
        assert!(!html.contains("<a href=\"x"), "{html}");
    }

    #[test]
    fn a_policy_with_frames_forbids_all_else() {
        let opened = policy("https://a.example https://b.example:8443");
        let (content, frames) = opened.split_once("; frame-ancestors ").unwrap();
        assert_eq!(frames, "https://a.example https://b.example:8443");
        assert_eq!(POLICY, format!("{content}; {NO_FRAMES}"));
    }

    //= ERR-7 accepted
    #[test]
    fn neither_page_nor_redirect_is_kept_or_told_of() {
        let redirect = redirect("https://t.example/?a=b").unwrap();
        assert_eq!(redirect.status(), 303);
        for answer in [page("t").answer(StatusCode::OK), redirect] {
            let headers = answer.headers();
            assert_eq!(headers["cache-control"], "no-store");
            assert_eq!(headers["referrer-policy"], "no-referrer");
            let policy = headers["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
            assert_eq!(headers["x-frame-options"], "DENY");
        }
        assert!(super::redirect("https://t.example/\n").is_none());
    }
}
