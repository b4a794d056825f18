//! The lines of an access log, of which no length fills the memory.

use std::io::{self, BufRead, Read};

/// The most bytes of a line. A line of the access log has a few kilobytes: no header section is longer than 32 KiB (HTTP-9).
pub(super) const MOST: usize = 1 << 20;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line of at most [`MOST`] bytes.
    Whole(Vec<u8>),
    /// A longer one, which was passed over.
    TooLong,
}

/// The lines of a reader, one after the other. The memory that they take is that of one line of [`MOST`] bytes.
#[derive(Debug)]
pub(super) struct Lines<R>(R);

impl<R: BufRead> Lines<R> {
    /// Reads the lines of a log.
    pub(super) const fn of(log: R) -> Self {
        Self(log)
    }

    fn read(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        // One more for the end of a line.
        let limit = u64::try_from(MOST).unwrap_or(u64::MAX).saturating_add(1);
        let mut bounded = (&mut self.0).take(limit);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > MOST {
            self.0.skip_until(b'\n')?;
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(Line::Whole(line)))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of each line, and none of one that is too long.
    fn lengths(log: impl BufRead) -> Vec<Option<usize>> {
        let lines = Lines::of(log).map(|line| match line.unwrap() {
            Line::Whole(line) => Some(line.len()),
            Line::TooLong => None,
        });
        lines.collect()
    }

    #[test]
    fn a_line_has_at_most_so_many_bytes() {
        let longest = vec![b'x'; MOST];
        let longer = vec![b'x'; MOST + 1];
        let far_longer = vec![b'x'; 3 * MOST];
        for (line, length) in [
            (&b""[..], Some(0)),
            (&b"{}"[..], Some(2)),
            (&longest[..], Some(MOST)),
            (&longer[..], None),
            (&far_longer[..], None),
        ] {
            let first = &b"first\n"[..];
            let between = [first, line, b"\nlast"].concat();
            assert_eq!(lengths(&between[..]), [Some(5), length, Some(4)]);
            // At the end, with and without an end of its own.
            let ended = [first, line, b"\n"].concat();
            assert_eq!(lengths(&ended[..]), [Some(5), length]);
            let open = [first, line].concat();
            let last = (!line.is_empty()).then_some(length);
            let expected: Vec<_> = [Some(5)].into_iter().chain(last).collect();
            assert_eq!(lengths(&open[..]), expected);
        }
        assert!(lengths(&b""[..]).is_empty());
    }

    /// A line without an end, as in a file of another kind: it is passed over in pieces.
    #[test]
    fn what_has_no_end_is_not_kept() {
        let length = 64 * u64::try_from(MOST).unwrap();
        let log = io::BufReader::new(io::repeat(b'x').take(length));
        assert_eq!(lengths(log), [None]);
    }
}
