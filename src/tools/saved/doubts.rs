//! The places of a saved request where the format may show other bytes than were sent.
//!
//! Deliberately not here: whether a signature or a digest vouches for such a place (`explain::vouched`).

/// The places, and the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::tools) struct Doubts {
    /// What the format does, and which one keeps every byte.
    pub(in crate::tools) why: &'static str,
    /// The request target.
    pub(in crate::tools) target: bool,
    /// The names of headers, in lower case.
    pub(in crate::tools) headers: Vec<String>,
    /// The body.
    pub(in crate::tools) body: bool,
}

/// `curl --trace-ascii`.
const DOTS: &str = "curl --trace-ascii writes a dot for every byte outside printable ASCII, and for a dot; curl --trace keeps every byte";

impl Doubts {
    /// The dots in these bytes: a head as text, and a body. `seen` is the text of curl's own lines, which name the host of the URL.
    pub(super) fn of_dots(head: &[u8], body: &[u8], seen: &[&[u8]]) -> Self {
        let mut doubts = Self {
            why: DOTS,
            body: body.contains(&b'.'),
            ..Self::default()
        };
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default().trim_ascii_end();
        let version = memchr::memmem::rfind(first, b" HTTP/");
        let before_version = version.and_then(|at| first.get(..at));
        doubts.target = before_version.unwrap_or(first).contains(&b'.');
        for line in lines.filter(|line| line.contains(&b'.')) {
            let colon = memchr::memchr(b':', line).unwrap_or(line.len());
            let (name, value) = line.split_at_checked(colon).unwrap_or((line, &[]));
            let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
            let is_known = match name.to_ascii_lowercase().as_slice() {
                b"host" => seen.iter().any(|line| names_host(line, value)),
                b"user-agent" => is_version_of_curl(value),
                _ => false,
            };
            if !is_known {
                doubts.doubt(&String::from_utf8_lossy(name));
            }
        }
        doubts
    }

    /// Whether there is any such place.
    pub(in crate::tools) const fn any(&self) -> bool {
        self.target || !self.headers.is_empty() || self.body
    }

    /// Doubts a header.
    pub(super) fn doubt(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        if !self.headers.contains(&name) {
            self.headers.push(name);
        }
    }
}

/// Whether a line of curl's, such as `Connected to bank.example (192.0.2.1) port 443`, names the host of this authority.
fn names_host(line: &[u8], authority: &[u8]) -> bool {
    let host = authority.split(|byte| *byte == b':').next();
    let host = host.unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'(' | b')' | b',' | b':' | b'\''));
    !host.is_empty() && words.any(|word| word == host)
}

/// `curl/7.88.1`, as curl writes it where no User-Agent is given.
fn is_version_of_curl(value: &[u8]) -> bool {
    let version = value.strip_prefix(b"curl/").unwrap_or_default();
    let mut parts = version.split(|byte| *byte == b'.');
    version.first().is_some_and(u8::is_ascii_digit)
        && parts.all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}
