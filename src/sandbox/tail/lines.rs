//! The lines of a log that another process writes, from where they were read last.
//!
//! Invariants: a line is given once and complete; a file that was replaced (log rotation) is read to its end, and then the new one from its
//! beginning; neither the memory nor one call grows with the log. Deliberately not here: the meaning of a line.

use portvakt_base::private_file;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The most bytes of one call. Of more unread bytes, the oldest are passed over: some ten thousand lines are enough for the latest.
const WINDOW: u64 = 8 * 1024 * 1024;

/// The longest line, in bytes. The gateway's lines have a few kilobytes at most.
const LINE_LIMIT: usize = 64 * 1024;

/// A log, and what was read of it.
#[derive(Debug)]
pub(super) struct LogLines {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    /// The rest of the line is passed over: it is too long, or its beginning was not read.
    is_skipping: bool,
}

impl LogLines {
    /// The log at a path. It need not exist yet.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            begun: Vec::new(),
            is_skipping: false,
        }
    }

    /// Gives each line that was completed since the last call. Without a file there is none, which is no error.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            let read = self.drain(&mut file, &mut each);
            match read.and_then(|()| self.is_replaced(&file)) {
                // The lines that were written in between. Behind them are none: the writer has opened the new file.
                Ok(true) => self.drain(&mut file, &mut each)?,
                other => {
                    self.file = Some(file);
                    return other.map(|_| ());
                }
            }
        }
        self.begun.clear();
        self.is_skipping = false;
        match private_file::open(&self.path) {
            Ok(mut file) => {
                let read = self.drain(&mut file, &mut each);
                self.file = Some(file);
                read
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether another file has the path. While none has, the old one is kept.
    fn is_replaced(&self, file: &File) -> io::Result<bool> {
        let read = file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(current) => Ok((current.dev(), current.ino()) != (read.dev(), read.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads from the file's position to its end.
    fn drain(&mut self, file: &mut File, each: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let length = file.metadata()?.len();
        let mut at = file.stream_position()?;
        if length < at {
            // The file was emptied.
            at = file.seek(SeekFrom::Start(0))?;
            self.begun.clear();
            self.is_skipping = false;
        }
        let latest = length.saturating_sub(WINDOW);
        if at < latest {
            file.seek(SeekFrom::Start(latest))?;
            self.begun.clear();
            self.is_skipping = true;
        }
        let mut window = file.take(WINDOW);
        let mut bytes = vec![0; LINE_LIMIT];
        loop {
            let count = match window.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.feed(bytes.get(..count).unwrap_or_default(), each);
        }
    }

    fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_skipping {
                self.begun.extend_from_slice(part);
            }
            if self.begun.len() > LINE_LIMIT {
                self.is_skipping = true;
            }
            if part.ends_with(b"\n") {
                if !self.is_skipping {
                    each(&self.begun);
                }
                self.is_skipping = false;
                self.begun.clear();
            } else if self.is_skipping {
                self.begun.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(lines: &mut LogLines) -> Vec<String> {
        let mut found = Vec::new();
        let each = |line: &[u8]| found.push(String::from_utf8(line.trim_ascii().to_vec()).unwrap());
        lines.read(each).unwrap();
        found
    }

    fn append(path: &std::path::Path, text: &[u8]) {
        let mut options = File::options();
        let mut file = options.create(true).append(true).open(path).unwrap();
        file.write_all(text).unwrap();
    }

    #[test]
    fn each_line_is_given_once_and_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut lines = LogLines::new(path.clone());
        assert_eq!(read(&mut lines), [""; 0], "there is no file yet");
        append(&path, b"a\nb");
        assert_eq!(read(&mut lines), ["a"]);
        assert_eq!(read(&mut lines), [""; 0]);
        append(&path, b"c\n");
        assert_eq!(read(&mut lines), ["bc"]);
    }

    #[test]
    fn a_replaced_file_is_read_to_its_end_and_an_emptied_one_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut lines = LogLines::new(path.clone());
        append(&path, b"a\n");
        assert_eq!(read(&mut lines), ["a"]);
        append(&path, b"b\nhalf");
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        assert_eq!(read(&mut lines), ["b"], "no new file yet");
        append(&path, b"c\n");
        assert_eq!(read(&mut lines), ["c"]);
        append(&path, b"d\nhalf");
        assert_eq!(read(&mut lines), ["d"]);
        File::create(&path).unwrap();
        append(&path, b"e\n");
        assert_eq!(read(&mut lines), ["e"]);
    }

    #[test]
    fn long_lines_and_old_ones_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut lines = LogLines::new(path.clone());
        let mut text = b"a\n".to_vec();
        text.resize(3 * LINE_LIMIT, b'x');
        append(&path, &text);
        assert_eq!(read(&mut lines), ["a"]);
        append(&path, b"\nb\n");
        assert_eq!(read(&mut lines), ["b"]);
        let many = usize::try_from(WINDOW).unwrap();
        let mut text = b"old\n".repeat(many / 4);
        text.extend_from_slice(b"new\n");
        append(&path, &text);
        let found = read(&mut lines);
        // The line at which the window begins may have lost its beginning, so it is passed over.
        assert_eq!(found.len(), many / 4 - 1);
        assert_eq!(found.last().unwrap(), "new");
    }
}
