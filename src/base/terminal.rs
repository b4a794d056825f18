//! The one writer of the programs' standard output and standard error.
//!
//! Invariant: no control character, and none that shows nothing, reaches a terminal but a line feed and a tab: text from outside cannot move the cursor, colour or
//! disguise what stands there. Only this module names the standard streams (a test of the architecture keeps that), so a command that
//! shows bytes of a caller, a file or a certificate needs no care of its own. Deliberately not here: the logs, whose lines are JSON.

use std::{
    fmt::{self, Display, Write as _},
    io::{self, IsTerminal, Stderr, Stdout, Write},
};

/// A standard stream, or what stands for it in a test, that escapes control characters.
#[derive(Debug)]
pub struct Terminal<W: Write> {
    stream: W,
    /// The beginning of a character whose rest has not been written yet.
    begun: Vec<u8>,
    /// Bytes pass as they are: a file or another program reads them.
    is_data: bool,
}

impl Terminal<Stdout> {
    /// Standard output.
    pub fn output() -> Self {
        Self::new(io::stdout())
    }

    /// Standard output for bytes that a file or another program must get unchanged, such as the body of an answer. On a terminal they
    /// are escaped.
    pub fn data() -> Self {
        let mut output = Self::output();
        output.is_data = !output.is_terminal();
        output
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.stream.is_terminal()
    }
}

impl Terminal<Stderr> {
    /// Standard error.
    pub fn errors() -> Self {
        Self::new(io::stderr())
    }
}

impl<W: Write> Terminal<W> {
    /// Escapes what is written to a stream.
    pub const fn new(stream: W) -> Self {
        Self {
            stream,
            begun: Vec::new(),
            is_data: false,
        }
    }

    /// Writes one line: line feeds of the text are escaped too, so that it cannot pose as several. It is one write, so that the line of
    /// another thread or process stands before or behind it, never within.
    ///
    /// # Errors
    /// The stream cannot be written.
    pub fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.write_all(format!("{}\n", OneLine(&text)).as_bytes())
    }

    /// Sets the colour of the text that follows, by a code of ECMA-48 (SGR); 0 is none.
    ///
    /// # Errors
    /// The stream cannot be written.
    pub fn colour(&mut self, code: u8) -> io::Result<()> {
        write!(self.stream, "\x1b[{code}m")
    }
}

/// Writes a line to standard error: the program, and what is wrong. Where nobody reads it, nothing is left to be done.
pub fn complain(program: &str, fault: impl Display) {
    let _ = Terminal::errors().line(format_args!("{program}: {fault}"));
}

/// Writes what the standard output still holds, before the process ends without its destructors.
pub fn flush() {
    let _ = io::stdout().flush();
}

/// Escapes control characters of external text, line feeds among them; letters of all scripts stay readable.
pub fn tame(text: &str) -> String {
    OneLine(&text).to_string()
}

struct OneLine<'t>(&'t dyn Display);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'f, 'g>(&'f mut fmt::Formatter<'g>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars()
            .try_for_each(|letter| write_tame(letter, self.0))
    }
}

/// Whether a character acts on the terminal, or shows nothing, instead of standing on it: it can disguise text. Beside controls these are
/// the line separators, the marks of direction, and what Unicode calls Default_Ignorable_Code_Point.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

fn write_tame(letter: char, to: &mut impl fmt::Write) -> fmt::Result {
    if acts(letter) {
        write!(to, "{}", letter.escape_default())
    } else {
        to.write_char(letter)
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_data {
            return self.stream.write(bytes);
        }
        let joined = [&self.begun, bytes].concat();
        self.begun.clear();
        let mut shown = String::with_capacity(joined.len());
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            for letter in chunk.valid().chars() {
                // Writing to a String never fails.
                let _ = match letter {
                    '\n' | '\t' => shown.write_char(letter),
                    other => write_tame(other, &mut shown),
                };
            }
            // At the end of the bytes, a character may go on in the next ones.
            let rest = chunk.invalid();
            if chunks.peek().is_none() && may_go_on(rest) {
                self.begun.extend(rest);
            } else {
                escape_bytes(rest, &mut shown);
            }
        }
        self.stream.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut shown = String::new();
        escape_bytes(&std::mem::take(&mut self.begun), &mut shown);
        self.stream.write_all(shown.as_bytes())?;
        self.stream.flush()
    }
}

/// The last bytes would get lost otherwise.
impl<W: Write> Drop for Terminal<W> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Whether these bytes are the beginning of a character, and nothing more.
fn may_go_on(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

fn escape_bytes(bytes: &[u8], to: &mut String) {
    for byte in bytes {
        // Writing to a String never fails.
        let _ = write!(to, "\\x{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each write, as the system gets it.
    struct Writes<'w>(&'w mut Vec<String>);

    impl Write for Writes<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_write() {
        let mut writes = Vec::new();
        let fault = format_args!("{}: {}\n{}", "state", 17, "æ").to_string();
        Terminal::new(Writes(&mut writes))
            .line(format_args!("portvakt: {fault}"))
            .unwrap();
        writes.retain(|write| !write.is_empty());
        assert_eq!(writes, ["portvakt: state: 17\\næ\n"]);
    }

    fn shown(parts: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut terminal = Terminal::new(&mut out);
        for part in parts {
            terminal.write_all(part).unwrap();
        }
        drop(terminal);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_acts_on_the_terminal() {
        for code in (0..=0xe_1000).filter_map(char::from_u32) {
            let text = shown(&[code.to_string().as_bytes()]);
            let stays = matches!(code, '\n' | '\t') || !acts(code);
            assert_eq!(text == code.to_string(), stays, "{code:?}");
            assert!(stays || text.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        assert_eq!(
            shown(&[b"\x1b]0;x\x07\n\tb\r\n"]),
            "\\u{1b}]0;x\\u{7}\n\tb\\r\n"
        );
        assert_eq!(
            shown(&["\u{9b}2J\u{202e}\u{85}".as_bytes()]),
            "\\u{9b}2J\\u{202e}\\u{85}"
        );
        // What shows nothing, and what belongs to letters of other scripts.
        assert_eq!(
            shown(&["a\u{200b}b\u{feff}\u{e0041}".as_bytes()]),
            "a\\u{200b}b\\u{feff}\\u{e0041}"
        );
        for stays in ["e\u{301}", "\u{915}\u{93f}", "\u{1f600}"] {
            assert_eq!(shown(&[stays.as_bytes()]), stays);
        }
    }

    /// A control character of two bytes is one, wherever a write ends.
    #[test]
    fn characters_in_several_writes() {
        let text = "\u{f8}\u{9b}\u{202e}\u{1f600}\u{1b}x".as_bytes();
        let whole = shown(&[text]);
        assert_eq!(whole, "\u{f8}\\u{9b}\\u{202e}\u{1f600}\\u{1b}x");
        for at in 0..text.len() {
            let (before, after) = text.split_at(at);
            assert_eq!(shown(&[before, after]), whole, "{at}");
        }
        let single: Vec<_> = text.chunks(1).collect();
        assert_eq!(shown(&single), whole);
        assert_eq!(shown(&[b"a\xffb\xc2"]), "a\\xFFb\\xC2");
        assert_eq!(shown(&[b"\xc2", b"\n"]), "\\xC2\n");
    }

    #[test]
    fn one_line_and_colours() {
        let mut out = Vec::new();
        let mut terminal = Terminal::new(&mut out);
        terminal.line("a\nportvakt: good\r").unwrap();
        terminal.colour(31).unwrap();
        terminal.write_all(b"\x1b[32m").unwrap();
        drop(terminal);
        assert_eq!(out, b"a\\nportvakt: good\\r\n\x1b[31m\\u{1b}[32m");
        assert_eq!(
            tame("Pr\u{f8}ve\n\u{1b}[31m\u{202e}"),
            "Pr\u{f8}ve\\n\\u{1b}[31m\\u{202e}"
        );
    }
}
