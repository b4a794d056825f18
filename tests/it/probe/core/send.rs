//! The bytes of an answer.

use super::Core;
use std::{fmt::Write as _, io::Write, net::TcpStream};

impl Core {
    /// Sends an answer.
    pub(super) fn send(
        &self,
        stream: &mut TcpStream,
        status: u16,
        body: &str,
    ) -> std::io::Result<()> {
        let is_error = status >= 400;
        let (kind, body) = match self.fault.as_str() {
            "html-errors" if is_error => ("text/html", "<h1>Error</h1>".to_owned()),
            "text-errors" if is_error => ("application/json", "Error".to_owned()),
            "own-address" => (
                "application/json",
                format!("{{\"href\": \"http://{}/v1\"}}", self.authority),
            ),
            _ => ("application/json", body.to_owned()),
        };
        let mut head = String::new();
        if self.has("informational") {
            head += &"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(9);
        }
        write!(head, "HTTP/1.1 {status} Answer\r\n").unwrap();
        if !self.has("content-type") {
            write!(head, "Content-Type: {kind}\r\n").unwrap();
        }
        if self.has("fields") {
            head += &"X-Field: a\r\n".repeat(120);
        }
        if self.has("invented-psu") || self.has("invented-agreement") {
            head += "Gateway-Psu-Bound: yes\r\n";
        }
        if self.has("invented-agreement") {
            head += "Gateway-Psu-Corporate-Bound: yes\r\n";
        }
        if self.has("hop-by-hop") {
            head += "Connection: Content-Type\r\n";
        }
        let length = format!("Content-Length: {}\r\n", body.len());
        let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let (framing, body) = match self.fault.as_str() {
            "two-lengths" => (length.repeat(2), body),
            "length-and-chunks" => (format!("{length}Transfer-Encoding: chunked\r\n"), chunked),
            "other-coding" => ("Transfer-Encoding: gzip, chunked\r\n".to_owned(), chunked),
            "surplus" => (length, body + "\r\n"),
            _ => (length, body),
        };
        stream.write_all(format!("{head}{framing}\r\n{body}").as_bytes())
    }
}
