//! Requests of all kinds: accepted ones, and those that each check refuses, changed by dice.

use super::changes::{CHANGES, Change, Draft, RECIPES};
use crate::harness::{
    Call, Dice, Gate, Sealed, Tpp, issuing_spec,
    pki::{Ca, CaSpec, LeafSpec, QcType, Role},
    render, render_head, rsa_key, world,
};
use std::{
    fmt,
    sync::{Arc, LazyLock},
};
use time::macros::datetime;

/// The number of requests over HTTP/1.1, and over HTTP/2.
const HTTP1: usize = 640;
const HTTP2: usize = 120;

/// How a request is sent.
pub(super) enum Wire {
    Http1,
    Http2(Box<Sealed>),
}

/// A request, and its bytes as text over HTTP/1.1 or as curl shows it over HTTP/2.
pub(super) struct Recorded {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) wire: Wire,
    /// The head with its empty line.
    pub(super) head: Vec<u8>,
    /// The bytes behind it.
    pub(super) framed: Vec<u8>,
    /// The body without its framing.
    pub(super) body: Vec<u8>,
    /// Whether a proxy accepts its lines, so that it can record the request.
    pub(super) is_parsable: bool,
    /// Whether nothing was changed after it was signed.
    is_intact: bool,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Recorded {
    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.framed].concat()
    }

    fn words(&self) -> Vec<Vec<u8>> {
        let line = self.head.split(|byte| *byte == b'\r').next().unwrap();
        line.split(|byte| *byte == b' ')
            .map(<[u8]>::to_vec)
            .collect()
    }

    pub(super) fn method(&self) -> String {
        String::from_utf8(self.words()[0].clone()).unwrap()
    }

    pub(super) fn target(&self) -> Vec<u8> {
        self.words()[1].clone()
    }

    pub(super) fn version(&self) -> String {
        String::from_utf8(self.words().pop().unwrap()).unwrap()
    }

    /// Names and values, without the white space around these.
    pub(super) fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = self.head.strip_suffix(b"\r\n\r\n").unwrap_or(&self.head);
        let lines = lines(text);
        let fields = lines.iter().skip(1).map(|line| {
            let colon = line
                .iter()
                .position(|byte| *byte == b':')
                .unwrap_or(line.len());
            let value = line.get(colon + 1..).unwrap_or_default();
            (line[..colon].to_vec(), trim(value).to_vec())
        });
        fields.collect()
    }

    fn field(&self, wanted: &str) -> Vec<u8> {
        let fields = self.fields().into_iter();
        let mut found = fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        found.next().map(|(_, value)| value).unwrap_or_default()
    }

    /// Whether a place, as a note names it, has a dot or a byte outside printable ASCII.
    pub(super) fn is_doubtful(&self, place: &str) -> bool {
        match place {
            "the request target" => is_odd(&self.target()),
            "the body" => is_odd(&self.framed),
            // White space around a value is lost too.
            name => lines(&self.head).iter().skip(1).any(|line| {
                let colon = line.iter().position(|byte| *byte == b':');
                let found = &line[..colon.unwrap_or(line.len())];
                let as_shown: String = found.iter().map(|byte| shown(*byte)).collect();
                as_shown.eq_ignore_ascii_case(name) && is_odd(line)
            }),
        }
    }

    /// Whether only signed parts have dots, and no part has another byte that a dot may stand for. The signature, whose own dots only an
    /// admitted request proves, has none.
    pub(super) fn has_only_signed_dots(&self) -> bool {
        let signature = String::from_utf8_lossy(&self.field("signature")).into_owned();
        let list = signature.split("headers=\"").nth(1).unwrap_or_default();
        let list = list.split('"').next().unwrap_or_default();
        let is_signed = |name: &str| list.split(' ').any(|one| one.eq_ignore_ascii_case(name));
        let all = self.fields().into_iter().all(|(name, value)| {
            let known = String::from_utf8_lossy(&name).to_ascii_lowercase();
            !is_odd(&name)
                && (!is_odd(&value)
                    || (is_signed(&known)
                        && value.is_ascii()
                        && !value.iter().any(u8::is_ascii_control)))
        });
        let has_plain_body = self.framed.iter().all(|byte| matches!(byte, b' '..=b'~'));
        // A keyId of another form makes the signature unreadable.
        self.is_intact
            && signature.contains("keyId=\"SN=")
            && all
            && has_plain_body
            && (!is_odd(&self.target()) || is_signed("(request-target)"))
            && (!self.framed.contains(&b'.') || is_signed("digest"))
    }
}

/// Whether `--trace-ascii` writes a dot here.
fn is_odd(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| shown(*byte) == '.')
}

fn shown(byte: u8) -> char {
    match byte {
        0x20..0x80 => char::from(byte),
        _ => '.',
    }
}

fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        match rest.strip_prefix(b"\r\n") {
            Some(after) => {
                lines.push(Vec::new());
                rest = after;
            }
            None => {
                lines.last_mut().unwrap().push(*byte);
                rest = after;
            }
        }
    }
    lines
}

fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |at| at + 1);
    &value[start..end]
}

/// A CA whose name has letters outside ASCII.
static LETTERS: LazyLock<Ca> = LazyLock::new(|| {
    let spec = CaSpec {
        organization: "\u{c6}rlig utsteder \u{f8}".into(),
        ..issuing_spec(&rsa_key(2048))
    };
    world().root.issue_ca(&spec).unwrap()
});

/// The senders: most with a good certificate.
static SENDERS: LazyLock<Vec<Arc<Tpp>>> = LazyLock::new(|| {
    let world = world();
    let letters = Tpp::of(LETTERS.issue(&world.leaf()).unwrap());
    let stranger = Ca::root(&CaSpec::development_root()).unwrap();
    let with = |change: fn(&mut LeafSpec)| {
        let mut spec = world.leaf();
        change(&mut spec);
        world.issue(&spec)
    };
    vec![
        Arc::clone(&world.both),
        Arc::clone(&world.both),
        Arc::clone(&world.both),
        Arc::clone(&world.both),
        Arc::clone(&letters),
        Arc::clone(&world.aisp),
        Arc::clone(&world.pisp),
        Arc::clone(&letters),
        with(|spec| spec.not_after = datetime!(2024-01-01 0:00 UTC)),
        with(|spec| spec.not_before = datetime!(2044-01-01 0:00 UTC)),
        with(|spec| spec.qc_type = Some(QcType::Esign)),
        with(|spec| spec.roles = None),
        with(|spec| spec.roles = Some(vec![Role::CardIssuing])),
        Tpp::of(stranger.issue(&world.leaf()).unwrap()),
    ]
});

/// The operations.
fn calls() -> [Call; 9] {
    [
        Call::plain(),
        Call::payment(),
        Call::accounts().present(),
        Call::cross_border(),
        Call::sandbox_transactions(),
        Call::basket(),
        Call::new("POST", "/v1/consents"),
        Call::details().present(),
        Call::payment().chunked(),
    ]
}

/// The PEM of the CA whose name has letters, for the gateway's intermediates.
pub(super) fn intermediate() -> String {
    LETTERS.pem()
}

/// All requests, each signed now.
pub(super) fn all(gate: &Gate, dice: &mut Dice) -> Vec<Recorded> {
    let mut requests = Vec::new();
    for number in 0..HTTP1 + HTTP2 {
        let is_http2 = number >= HTTP1;
        let at = dice.below(9) as usize;
        let (recipe, change) = match number % 3 {
            // Clients refuse to send these over HTTP/2.
            _ if is_http2
                && ["nominates", "host-odd"].contains(&RECIPES[number % RECIPES.len()].0) =>
            {
                (None, None)
            }
            _ if is_http2 => (Some(number % RECIPES.len()), None),
            0 => (None, Some(number / 3 % CHANGES.len())),
            1 => (Some(number / 3 % RECIPES.len()), None),
            _ => (Some(dice.below(3) as usize % 2), None),
        };
        let change = change.map(|at| &CHANGES[at]);
        let is_about_letters = change.is_some_and(|(name, ..)| name.starts_with("key-letters"));
        // A fault of the sender would hide most others.
        let senders = if number % 5 == 2 { SENDERS.len() } else { 5 };
        let sender = match is_about_letters {
            true => 4,
            false => dice.below(senders as u64) as usize,
        };
        let (recipe_name, recipe) = RECIPES[recipe.unwrap_or_default()];
        let call = recipe(calls()[at].clone().by(&SENDERS[sender]));
        let sealed = gate.seal(&call);
        let name = format!(
            "{number} {} {} {recipe_name} {} by {sender}",
            sealed.request.method,
            sealed.request.target,
            change.map_or("", |change| change.0)
        );
        let is_parsable = change.is_none_or(|(_, is_parsable, _)| *is_parsable);
        let mut request = match is_http2 {
            true => over_http2(sealed),
            false => over_http1(&sealed, change.map(|(.., change)| *change), dice),
        };
        (request.number, request.name, request.is_parsable) = (number, name, is_parsable);
        requests.push(request);
    }
    requests
}

fn over_http1(sealed: &Sealed, change: Option<Change>, dice: &mut Dice) -> Recorded {
    let bytes = render(sealed);
    let head = render_head(sealed);
    let text = head.strip_suffix(b"\r\n\r\n").unwrap();
    let mut draft = Draft {
        lines: lines(text),
        body: sealed.request.body.clone().unwrap_or_default(),
        framed: bytes[head.len()..].to_vec(),
    };
    if let Some(change) = change {
        change(&mut draft, dice);
    }
    let mut head = draft.lines.join(&b"\r\n"[..]);
    head.extend_from_slice(b"\r\n\r\n");
    Recorded {
        number: 0,
        name: String::new(),
        wire: Wire::Http1,
        head,
        framed: draft.framed,
        body: draft.body,
        is_parsable: true,
        is_intact: change.is_none(),
    }
}

/// As curl shows it: a head of lines, with Host for `:authority`.
fn over_http2(sealed: Sealed) -> Recorded {
    let request = &sealed.request;
    let mut head = format!("{} {} HTTP/2\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = request.body.clone().unwrap_or_default();
    let is_chunked = render_head(&sealed)
        .windows(7)
        .any(|window| window == b"chunked");
    if request.body.is_some() && !is_chunked {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    Recorded {
        number: 0,
        name: String::new(),
        head: head.into_bytes(),
        framed: body.clone(),
        body,
        wire: Wire::Http2(Box::new(sealed)),
        is_parsable: true,
        is_intact: true,
    }
}

/// The requests that curl itself sends.
pub(super) fn for_curl() -> Vec<(&'static str, Call)> {
    let letters = || {
        Call::plain().by(&SENDERS[4]).signature(|signature| {
            let escaped = "\u{c6}rlig utsteder \u{f8}".bytes();
            let escaped = escaped.map(|byte| match byte.is_ascii() {
                true => char::from(byte).to_string(),
                false => format!("\\{byte:02X}"),
            });
            signature.replace(&escaped.collect::<String>(), "\u{c6}rlig utsteder \u{f8}")
        })
    };
    vec![
        ("plain", Call::plain()),
        ("payment", Call::payment()),
        ("late", Call::plain().off_by(-90)),
        ("unsigned", Call::plain().without("TPP-Redirect-URI")),
        ("key-letters", letters()),
        ("letters", Call::plain().with("X-Navn", "Bj\u{f8}rn")),
        (
            "control",
            Call::plain()
                .with("X-Odd", "a")
                .altered(|request| request.set_header("X-Odd", "a\u{1}b")),
        ),
        (
            "bent",
            Call::plain().altered(|request| request.set_header("X-Request-ID", "other")),
        ),
    ]
}
