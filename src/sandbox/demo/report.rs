//! The output on the terminal.
//!
//! Invariant: the words are the same with and without colours, and a line is at most 80 columns wide, apart from commands to paste.
//! Deliberately not here: a redrawn line or a cursor that moves. What is written can be kept in a file as it is.

use super::answered::Answered;
use super::browser::Visited;
use super::play::Played;
use super::scene::{Expected, Scene};
use super::setup::DemoSetup;
use portvakt_base::terminal::Terminal;
use serde_json::Value;
use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The assumed width of a terminal, in columns.
const WIDTH: usize = 80;

/// The indentation of a scene's lines.
const INDENT: &str = "     ";

/// The indentation of the request at the core.
const DEEPER: &str = "       ";

/// The headers of an answer that are shown with its body, if present (QUO-11).
const TELLING: [&str; 3] = ["ratelimit", "ratelimit-policy", "retry-after"];

/// Writes the demo's story.
pub(super) struct Report<'a> {
    out: Terminal<&'a mut dyn Write>,
    colours: bool,
    in_line: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy)]
enum Ink {
    Good,
    Bad,
    Title,
    Faint,
}

impl<'a> Report<'a> {
    /// Uses colours on a terminal, unless the user disabled them (no-color.org).
    pub(super) fn new(is_terminal: bool, out: &'a mut dyn Write) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            out: Terminal::new(out),
            colours: is_terminal && !refused && !dumb,
            in_line: false,
        }
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(super) fn title(&mut self, text: &str) -> io::Result<()> {
        self.inked("", Ink::Title, text)
    }

    /// Begins a longer step; [`Report::end`] ends it.
    pub(super) fn begin(&mut self, what: &str, how: &str) -> io::Result<()> {
        write!(self.out, "  {what:<13}{how} ... ")?;
        self.in_line = true;
        self.out.flush()
    }

    pub(super) fn end(&mut self, took: Duration) -> io::Result<()> {
        self.in_line = false;
        self.line(&format!("done, {} ms", took.as_millis()))
    }

    /// Reports a step that is already done.
    pub(super) fn step(&mut self, what: &str, how: &str) -> io::Result<()> {
        self.line(&format!("  {what:<13}{how}"))
    }

    /// The programs' log files, once they run.
    pub(super) fn cast(&mut self, setup: &DemoSetup) -> io::Result<()> {
        self.step("access log", &setup.access_log().display().to_string())?;
        self.step("events", &setup.gateway_log().display().to_string())?;
        self.step("core's log", &setup.journal().display().to_string())?;
        self.line("")
    }

    /// The scenes of a flow begin.
    pub(super) fn flow(&mut self, name: &str) -> io::Result<()> {
        self.title(&format!("── {name}"))?;
        self.line("")
    }

    /// A scene: its heading, the request, the answer, and the request at the core.
    pub(super) fn scene(
        &mut self,
        number: usize,
        scene: &Scene,
        played: &Played,
    ) -> io::Result<()> {
        let good = played.went_as_expected();
        self.heading(number, good, scene.title)?;
        self.faint(INDENT, &request(scene, played))?;
        match &played.answer {
            Err(fault) => self.paragraph(INDENT, &format!("← no answer: {fault}"))?,
            Ok(answer) => self.answer(answer, scene, played)?,
        }
        if !good {
            self.inked(INDENT, Ink::Bad, &expectation(scene.expected))?;
        }
        self.line("")
    }

    /// A visit to the bank's page.
    pub(super) fn visit(
        &mut self,
        number: usize,
        title: &str,
        visited: &Visited,
        good: bool,
    ) -> io::Result<()> {
        self.heading(number, good, title)?;
        for line in &visited.lines {
            match line.starts_with('→') {
                true => self.faint(INDENT, line)?,
                false => self.paragraph(INDENT, line)?,
            }
        }
        if !good {
            let fault = visited.fault.as_deref();
            let text =
                fault.unwrap_or("expected: a redirect to the TPP that says all that it must");
            self.inked(INDENT, Ink::Bad, text)?;
        }
        self.line("")
    }

    fn heading(&mut self, number: usize, good: bool, title: &str) -> io::Result<()> {
        write!(self.out, "{number:>2} ")?;
        match good {
            true => self.ink(Ink::Good, "✓")?,
            false => self.ink(Ink::Bad, "✗")?,
        }
        self.inked(" ", Ink::Title, title)
    }

    /// The request at the core comes first, if there is one: that is the order of events.
    fn answer(&mut self, answer: &Answered, scene: &Scene, played: &Played) -> io::Result<()> {
        match played.seen.len() {
            1 if !scene.shows_core => self.line(&format!("{INDENT}the core saw it"))?,
            _ => played.seen.iter().try_for_each(|seen| self.seen(seen))?,
        }
        match answer.text("reason") {
            Some(reason) => {
                let code = answer.text("code").map(|code| format!("{code}, "));
                let code = code.unwrap_or_default();
                self.line(&format!("{INDENT}← {} {code}{reason}", answer.status))?;
                self.paragraph(DEEPER, &answer.first_fault().unwrap_or_default())?;
                if let Some(link) = answer.link("scaRedirect") {
                    let start = format!("{DEEPER}scaRedirect: ");
                    let link = abbreviated(link, room_after(&start));
                    self.line(&format!("{start}{link}"))?;
                }
            }
            None => {
                let start = format!("{INDENT}← {} ", answer.status);
                let body = match &answer.body {
                    Value::Null => "with a body that is no JSON".to_owned(),
                    body => abbreviated(&body.to_string(), room_after(&start)),
                };
                self.line(&format!("{start}{body}"))?;
            }
        }
        let telling = TELLING
            .iter()
            .filter_map(|name| Some((name, answer.header(name)?)));
        for (name, value) in telling {
            self.line(&format!("{DEEPER}{name}: {value}"))?;
        }
        if played.seen.is_empty() {
            self.line(&format!("{INDENT}the core saw nothing"))?;
        }
        Ok(())
    }

    /// The request in the core's log: its target, the gateway's headers, and its signature.
    fn seen(&mut self, seen: &Value) -> io::Result<()> {
        let text = |name| seen.get(name).and_then(Value::as_str).unwrap_or("?");
        self.line(&format!("{INDENT}the core saw"))?;
        self.line(&format!("{DEEPER}{} {}", text("method"), text("target")))?;
        let mut others = 0_usize;
        for (name, value) in headers(seen) {
            let start = format!("{DEEPER}{name}: ");
            if is_long(name) {
                let value = abbreviated(value, room_after(&start));
                self.line(&format!("{start}{value}"))?;
            } else if name.starts_with("gateway-") {
                self.paragraph(DEEPER, &format!("{name}: {value}"))?;
            } else {
                others = others.saturating_add(1);
            }
        }
        self.faint(DEEPER, &format!("and {others} other headers"))
    }

    pub(super) fn summary(&mut self, good: usize, all: usize) -> io::Result<()> {
        let ink = if good == all { Ink::Good } else { Ink::Bad };
        self.inked("", ink, &format!("demo: {good} of {all} as expected"))
    }

    /// Instructions for trying it. Commands can be pasted in the folder where the demo was started.
    pub(super) fn invitation(
        &mut self,
        setup: &DemoSetup,
        certs: &Path,
        link: &str,
    ) -> io::Result<()> {
        let portvakt = from_here(&setup.portvakt);
        let call = |option: &str, target: &str| {
            format!(
                "{portvakt} tpp call {option}\\\n  --cert {0}/tpp-both.pem --key {0}/tpp-both.key --cacert {0}/server-ca.pem \\\n  GET {1}{target}",
                certs.display(),
                setup.base_url(),
            )
        };
        self.title(
            "\nThe gateway and the core stay up. Be a PSU, and open the bank's page in a browser:",
        )?;
        self.line(&format!("\n{link}\n"))?;
        self.paragraph(
            "",
            "It ends at tpp.example, which is nobody: psu-id then stands in the browser's address line.",
        )?;
        self.title("\nBe a TPP; with -H 'PSU-ID: ...' --psu-present it gets that PSU's accounts:")?;
        self.line(&format!("\n{}", call("", "/v1/accounts")))?;
        self.title("\nThe same as a curl command (its date holds for a minute):")?;
        self.line(&format!("\n{}", call("--curl ", "/v1/accounts")))?;
        self.title("\nWhat the bank knows, and its batch:")?;
        self.line(&format!("\nhttp://{}/console", setup.upstream))?;
        self.title("\nWhat the gateway counted:")?;
        self.line(&format!("\ncurl -s http://{}/metrics", setup.control))?;
        self.title("\nCtrl-C stops both.")
    }

    fn faint(&mut self, indent: &str, text: &str) -> io::Result<()> {
        for line in wrapped(text, WIDTH.saturating_sub(indent.len())) {
            self.inked(indent, Ink::Faint, &line)?;
        }
        Ok(())
    }

    fn paragraph(&mut self, indent: &str, text: &str) -> io::Result<()> {
        wrapped(text, WIDTH.saturating_sub(indent.len()))
            .iter()
            .try_for_each(|line| self.line(&format!("{indent}{line}")))
    }

    /// A line of one colour.
    fn inked(&mut self, indent: &str, ink: Ink, text: &str) -> io::Result<()> {
        write!(self.out, "{indent}")?;
        self.ink(ink, text)?;
        writeln!(self.out)
    }

    fn ink(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        if !self.colours {
            return write!(self.out, "{text}");
        }
        // SGR codes of ECMA-48.
        self.out.colour(match ink {
            Ink::Good => 32,
            Ink::Bad => 31,
            Ink::Title => 1,
            Ink::Faint => 2,
        })?;
        write!(self.out, "{text}")?;
        self.out.colour(0)
    }
}

/// A fault in the middle of a line begins a new line.
impl Drop for Report<'_> {
    fn drop(&mut self) {
        if self.in_line {
            let _ = writeln!(self.out);
        }
    }
}

/// The request in short.
fn request(scene: &Scene, played: &Played) -> String {
    let sent = &played.sent;
    format!("→ {} {}, {}.pem", sent.method, sent.target, scene.signer)
}

fn expectation(expected: Expected) -> String {
    match expected {
        Expected::Forwarded(status) => {
            format!("expected: {status}, and the core to see the request once")
        }
        Expected::Answered(status) => format!("expected: {status}, and the core to see nothing"),
        Expected::Refused(status, reason) => {
            format!("expected: {status}, {reason}, and the core to see nothing")
        }
    }
}

fn headers(seen: &Value) -> impl Iterator<Item = (&str, &str)> {
    let pairs = seen.get("headers").and_then(Value::as_array);
    pairs
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?)))
}

/// Whether the value is kilobytes of base64, of which the beginning is enough.
fn is_long(name: &str) -> bool {
    matches!(name, "tpp-signature-certificate" | "signature")
}

/// The number of characters left on the line.
fn room_after(start: &str) -> usize {
    WIDTH.saturating_sub(start.chars().count())
}

/// At most `room` characters: the beginning, and how many there are.
fn abbreviated(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let rest = format!("... ({length} characters)");
    let start: String = text.chars().take(room.saturating_sub(rest.len())).collect();
    start + &rest
}

/// Lines of at most `width` characters, apart from words that are longer than that and cannot be broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        for (number, piece) in pieces(word, width).into_iter().enumerate() {
            let fits = number == 0 && length(&line) + 1 + length(&piece) <= width;
            if !line.is_empty() && !fits {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&piece);
        }
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines
}

/// A long address in pieces that fit, each but the first from a '/', '?' or '&' on.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let ends = word.match_indices(['/', '?', '&']).map(|(at, _)| at);
    let mut start = 0;
    for end in ends.chain([word.len()]) {
        let part = word.get(start..end).unwrap_or_default();
        start = end;
        match pieces.last_mut() {
            Some(last) if last.is_empty() || length(last) + length(part) <= width => {
                last.push_str(part);
            }
            _ => pieces.push(part.to_owned()),
        }
    }
    pieces
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The path as it is typed from the folder that the demo was started in.
fn from_here(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) => format!("./{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_abbreviated_to_the_room_there_is() {
        assert_eq!(abbreviated("abc", 3), "abc");
        let long = "æ".repeat(1_000);
        let short = abbreviated(&long, 40);
        assert_eq!(short.chars().count(), 40);
        assert!(short.ends_with("... (1000 characters)"), "{short}");
    }

    #[test]
    fn words_are_wrapped_and_none_is_lost() {
        assert_eq!(wrapped("a bb ccc d", 4), ["a bb", "ccc", "d"]);
        assert_eq!(wrapped("abcdef g", 4), ["abcdef", "g"]);
        assert!(wrapped(" ", 4).is_empty());
        let address = wrapped("to http://a/bcd?efg=h&i", 9);
        assert_eq!(address, ["to", "http://a", "/bcd", "?efg=h&i"]);
    }

    #[test]
    fn an_open_line_is_closed_and_nothing_is_coloured_in_a_file() {
        let mut out = Vec::new();
        let mut report = Report::new(false, &mut out);
        report.begin("core", "starts").unwrap();
        report.end(Duration::from_millis(2)).unwrap();
        report.summary(1, 2).unwrap();
        report.begin("gateway", "starts").unwrap();
        drop(report);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "  core         starts ... done, 2 ms\ndemo: 1 of 2 as expected\n  gateway      starts ... \n"
        );
    }
}
