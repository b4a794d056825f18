//! Placeholders in the bytes of a case become requests, signed anew each time.

use super::case::{Case, Signs};
use crate::harness::{Call, Gate, Sealed, block, chunked, field, render, string};

/// A signed request of a case.
pub(crate) struct Made {
    /// X-Request-ID.
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) target: String,
}

/// The requests of one case.
pub(super) struct Requests<'g> {
    gate: &'g Gate,
    case: &'g Case,
    pub(super) made: Vec<Made>,
    subject: Option<Sealed>,
}

impl<'g> Requests<'g> {
    pub(super) const fn of(gate: &'g Gate, case: &'g Case) -> Self {
        Self {
            gate,
            case,
            made: Vec::new(),
            subject: None,
        }
    }

    /// Another valid GET.
    pub(super) fn get(&mut self) -> Sealed {
        self.make(Call::plain())
    }

    fn make(&mut self, call: Call) -> Sealed {
        let id = format!("{}.{}", self.case.name, self.made.len() + 1);
        let sealed = self.gate.seal(&call.with("X-Request-ID", &id));
        self.made.push(Made {
            id,
            method: sealed.request.method.clone(),
            target: sealed.request.target.clone(),
        });
        sealed
    }

    /// The request that the case changes.
    fn subject(&mut self) -> Sealed {
        if self.subject.is_none() {
            let call = match self.case.signs {
                Signs::Get => Call::plain(),
                Signs::Payment => Call::payment(),
            };
            self.subject = Some(self.make(call));
        }
        self.subject.clone().unwrap()
    }

    /// The bytes of a part of the case. Each character stands for one byte, `${key}` for a value, and over HTTP/2 `<name: value>` for a
    /// literal header field.
    pub(super) fn fill(&mut self, part: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = part;
        let is_http2 = self.case.is_http2;
        let marks = |text: &str| text.find(|sign: char| sign == '$' || (is_http2 && sign == '<'));
        while let Some(at) = marks(rest) {
            let (before, marked) = rest.split_at(at);
            bytes.extend(latin1(before));
            rest = if let Some(placeholder) = marked.strip_prefix("${") {
                let (key, behind) = placeholder
                    .split_once('}')
                    .expect("the end of a placeholder");
                bytes.extend(self.value(key));
                behind
            } else if let Some(field) = marked.strip_prefix('<') {
                let (field, behind) = field.split_once('>').expect("the end of a field");
                let (name, value) = field.split_once(": ").expect("a name and a value");
                let (name, value) = (self.fill(name), self.fill(value));
                bytes.extend([&[0][..], &string(&name), &string(&value)].concat());
                behind
            } else {
                bytes.push(b'$');
                &marked[1..]
            };
        }
        bytes.extend(latin1(rest));
        bytes
    }

    fn value(&mut self, key: &str) -> Vec<u8> {
        if let Some((text, count)) = key.split_once(':') {
            return latin1(text).repeat(count.parse().unwrap());
        }
        let is_http2 = self.case.is_http2;
        let body = |sealed: Sealed| sealed.request.body.unwrap_or_default();
        match key {
            "get" if is_http2 => head_block(&self.get()),
            "get" => render(&self.get()),
            "head" => head_block(&self.subject()),
            "signed" => signed_headers(&self.subject(), is_http2),
            "target" => self.subject().request.target.into_bytes(),
            "body" => body(self.subject()),
            "length" => body(self.subject()).len().to_string().into_bytes(),
            "size" => format!("{:x}", body(self.subject()).len()).into_bytes(),
            "chunks" => chunked(&body(self.subject())),
            _ => panic!("{}: ${{{key}}} is unknown", self.case.name),
        }
    }
}

/// The header block of a request.
pub(super) fn head_block(sealed: &Sealed) -> Vec<u8> {
    let path = [&[4][..], &string(sealed.request.target.as_bytes())].concat();
    block(sealed, &path)
}

/// All headers except Host.
fn signed_headers(sealed: &Sealed, is_http2: bool) -> Vec<u8> {
    let headers = sealed.request.headers.iter();
    let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    let bytes = headers.map(|(name, value)| match is_http2 {
        true => field(&name.to_ascii_lowercase(), value.as_bytes()),
        false => format!("{name}: {value}\r\n").into_bytes(),
    });
    bytes.collect::<Vec<_>>().concat()
}

fn latin1(text: &str) -> Vec<u8> {
    let byte = |point| u8::try_from(point).expect("a character that is one byte");
    text.chars().map(u32::from).map(byte).collect()
}
