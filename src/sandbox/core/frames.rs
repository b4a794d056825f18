//! The origins whose pages may show the SCA page in a frame (§Flows; SBX-17): none by default.
//!
//! Invariant: an origin is exact, a scheme, a host and perhaps a port. A wildcard would also name hosts that somebody else may register.

use super::html::policy;
use axum::body::Body;
use axum::http::Response;
use axum::http::header::{self, HeaderValue, InvalidHeaderValue};
use std::str::FromStr;

/// RFC 1035, section 2.3.4: the longest name, and the longest label of one.
const LONGEST_HOST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// An origin (RFC 6454) with the scheme https.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrameOrigin(String);

/// The reason why a text is no origin, with its correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAnOrigin {
    /// Another scheme, or none.
    #[error("begin it with https://, in lower case: other schemes may not frame the page")]
    Scheme,
    /// A path, a query, a fragment or a user.
    #[error(
        "end it after the host or the port: an origin has no user, no path, no query and no slash at its end"
    )]
    More,
    /// A wildcard.
    #[error("name each host by an option of its own: a wildcard is not taken")]
    Wildcard,
    /// Not a host name.
    #[error(
        "write the host as a DNS name or an IPv4 address in lower case, as in https://tpp.example: a name with other letters as xn--…"
    )]
    Host,
    /// Not a port.
    #[error(
        "write the port as a number from 1 to 65535 without zeros in front, or leave it and its colon out"
    )]
    Port,
}

impl FromStr for FrameOrigin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let rest = text.strip_prefix("https://").ok_or(NotAnOrigin::Scheme)?;
        if rest.contains(['/', '?', '#', '@', '\\']) {
            return Err(NotAnOrigin::More);
        }
        if rest.contains('*') {
            return Err(NotAnOrigin::Wildcard);
        }
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        if !is_host(host) {
            return Err(NotAnOrigin::Host);
        }
        if !port.is_none_or(is_port) {
            return Err(NotAnOrigin::Port);
        }
        Ok(Self(text.to_owned()))
    }
}

fn is_host(host: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= LONGEST_HOST && host.split('.').all(is_label)
}

fn is_port(port: &str) -> bool {
    let is_written = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    is_written && port.parse::<u16>().is_ok()
}

/// The policy of pages that may be framed.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    /// `None`: no page of another origin may.
    policy: Option<HeaderValue>,
}

impl Frames {
    /// Frames in pages of these origins.
    pub(super) fn of(origins: &[FrameOrigin]) -> Result<Self, InvalidHeaderValue> {
        if origins.is_empty() {
            return Ok(Self::default());
        }
        let origins: Vec<&str> = origins.iter().map(|origin| origin.0.as_str()).collect();
        Ok(Self {
            policy: Some(policy(&origins.join(" ")).parse()?),
        })
    }

    /// Lets the origins frame an answer. X-Frame-Options, which names no origins, then goes: frame-ancestors replaces it.
    pub(super) fn open(&self, mut answer: Response<Body>) -> Response<Body> {
        if let Some(policy) = &self.policy {
            let headers = answer.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
            headers.remove(header::X_FRAME_OPTIONS);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= SBX-17 accepted
    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for text in [
            "https://tpp.example",
            "https://tpp.example:8443",
            "https://xn--bcher-kva.example",
            "https://192.0.2.7:1",
            "https://localhost",
        ] {
            assert_eq!(
                text.parse::<FrameOrigin>(),
                Ok(FrameOrigin(text.into())),
                "{text}"
            );
        }
    }

    //= SBX-17 refused
    #[test]
    fn what_is_no_exact_origin_is_refused_with_its_correction() {
        let long = format!("https://{}.example", "a".repeat(64));
        for (text, expected) in [
            ("", NotAnOrigin::Scheme),
            ("http://tpp.example", NotAnOrigin::Scheme),
            ("HTTPS://tpp.example", NotAnOrigin::Scheme),
            ("tpp.example", NotAnOrigin::Scheme),
            ("'self'", NotAnOrigin::Scheme),
            ("https://tpp.example/", NotAnOrigin::More),
            ("https://tpp.example/page", NotAnOrigin::More),
            ("https://tpp.example?a", NotAnOrigin::More),
            ("https://user@tpp.example", NotAnOrigin::More),
            ("https://*", NotAnOrigin::Wildcard),
            ("https://*.tpp.example", NotAnOrigin::Wildcard),
            ("https://tpp.example:*", NotAnOrigin::Wildcard),
            ("https://", NotAnOrigin::Host),
            ("https://TPP.example", NotAnOrigin::Host),
            ("https://bücher.example", NotAnOrigin::Host),
            ("https://tpp.example;script-src https:", NotAnOrigin::Host),
            ("https://a.example https://b.example", NotAnOrigin::More),
            ("https://tpp..example", NotAnOrigin::Host),
            ("https://-tpp.example", NotAnOrigin::Host),
            ("https://[::1]", NotAnOrigin::Host),
            (long.as_str(), NotAnOrigin::Host),
            ("https://tpp.example:", NotAnOrigin::Port),
            ("https://tpp.example:0443", NotAnOrigin::Port),
            ("https://tpp.example:65536", NotAnOrigin::Port),
            ("https://tpp.example:443 ", NotAnOrigin::Port),
        ] {
            assert_eq!(text.parse::<FrameOrigin>(), Err(expected), "{text}");
            assert!(!expected.to_string().is_empty());
        }
    }
}
