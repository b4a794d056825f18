//! The destination of a log's lines: standard output, standard error, or a file.
//!
//! Invariant: a line that was written in part, because the disk was full, is ended before the next one, so every later line is whole.
//! Deliberately not here: rotation, which the operator's tool does; it moves the file and sends SIGUSR1.

use crate::{config::LogOutput, private_file};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
};

/// The mode of a new file: a collector of logs may run as another user of the same group. The lines hold no personal data.
const MODE: u32 = 0o640;

/// An open destination.
#[derive(Debug)]
pub(super) struct Sink {
    output: LogOutput,
    file: File,
    /// Whether the last line is incomplete.
    is_torn: bool,
}

impl Sink {
    /// Opens a destination; creates the file if it is missing.
    pub(super) fn open(output: LogOutput) -> Result<Self, LogFault> {
        match open(&output) {
            Ok(file) => Ok(Self {
                output,
                file,
                is_torn: false,
            }),
            Err(error) => Err(LogFault { output, error }),
        }
    }

    /// Opens the file by its name again. On a failure, the open file stays in use.
    pub(super) fn reopen(&mut self) -> Result<(), LogFault> {
        if matches!(self.output, LogOutput::File(_)) {
            self.file = open(&self.output).map_err(|error| LogFault {
                output: self.output.clone(),
                error,
            })?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Writes whole lines. Returns the number of bytes that were written, and the reason for not writing the rest.
    pub(super) fn write(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        if self.is_torn {
            match self.file.write(b"\n") {
                Ok(1) => self.is_torn = false,
                Ok(_) => return (0, Err(ErrorKind::WriteZero.into())),
                Err(error) => return (0, Err(error)),
            }
        }
        let mut rest = lines;
        let written = loop {
            if rest.is_empty() {
                break Ok(());
            }
            match self.file.write(rest) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let done = lines.len().saturating_sub(rest.len());
        let last = lines.get(..done).and_then(<[u8]>::last);
        self.is_torn = last.is_some_and(|last| *last != b'\n');
        (done, written)
    }
}

/// The reason why a log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{output}: {error}{}", hint(.output, .error))]
pub struct LogFault {
    pub(super) output: LogOutput,
    pub(super) error: io::Error,
}

/// What to change where the file of a log cannot be opened.
fn hint(output: &LogOutput, error: &io::Error) -> String {
    let LogOutput::File(path) = output else {
        return String::new();
    };
    match error.kind() {
        ErrorKind::NotFound => {
            let folder = private_file::folder_of(path).display();
            format!("; make the folder {folder}, or name a file in another one")
        }
        // ENXIO has no kind of its own.
        _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            "; it is a socket, or a FIFO that nobody reads: start its reader first, or name a file"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Tries whether a log can be opened; makes and changes no file.
///
/// # Errors
/// The reason why it cannot.
pub fn try_log(output: &LogOutput) -> Result<(), LogFault> {
    let LogOutput::File(path) = output else {
        return Ok(());
    };
    let tried = match path.try_exists() {
        Ok(true) => open_file(path, false).map(drop),
        // The folder of a log is not made.
        _ => fs::metadata(private_file::folder_of(path)).and_then(|_| private_file::try_make(path)),
    };
    tried.map_err(|error| LogFault {
        output: output.clone(),
        error,
    })
}

/// The standard streams are used as files: the buffer of [`io::Stdout`] would keep a part of a line that could not be written.
fn open(output: &LogOutput) -> io::Result<File> {
    match output {
        LogOutput::StandardOutput => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        LogOutput::StandardError => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        LogOutput::File(path) => open_file(path, true),
    }
}

/// A FIFO that nobody reads is refused, where an ordinary open would wait. Its lines are then written like those of a pipe: a full one is
/// waited for.
fn open_file(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(create).mode(MODE);
    let file = private_file::without_waiting(&mut options).open(path)?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_ended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut sink = Sink::open(LogOutput::File(path.clone())).unwrap();
        assert_eq!(sink.write(b"{\"a\":1}\n").0, 8);
        // The disk was full after a part of the line.
        sink.file.write_all(b"{\"b\"").unwrap();
        sink.is_torn = true;
        assert_eq!(sink.write(b"{\"c\":3}\n").0, 8);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"b\"\n{\"c\":3}\n");
    }

    #[test]
    fn a_file_that_was_moved_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let moved = folder.path().join("log.1");
        let mut sink = Sink::open(LogOutput::File(path.clone())).unwrap();
        sink.write(b"1\n").1.unwrap();
        fs::rename(&path, &moved).unwrap();
        sink.write(b"2\n").1.unwrap();
        sink.reopen().unwrap();
        sink.write(b"3\n").1.unwrap();
        assert_eq!(fs::read_to_string(&moved).unwrap(), "1\n2\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "3\n");
    }

    #[test]
    fn a_fifo_needs_a_reader_and_a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let output = LogOutput::File(fifo.clone());
        for fault in [
            try_log(&output).unwrap_err(),
            Sink::open(output.clone()).unwrap_err(),
        ] {
            assert!(fault.to_string().contains("nobody reads"), "{fault}");
        }
        let _reader = OpenOptions::new().read(true).write(true).open(&fifo);
        try_log(&output).unwrap();
        let mut sink = Sink::open(output).unwrap();
        let flags = fcntl_getfl(&sink.file).unwrap();
        assert!(
            !flags.contains(OFlags::NONBLOCK),
            "a full FIFO would lose lines"
        );
        assert_eq!(sink.write(b"1\n").0, 2);
        let missing = LogOutput::File(folder.path().join("none/log"));
        for fault in [
            try_log(&missing).unwrap_err(),
            Sink::open(missing).unwrap_err(),
        ] {
            let text = fault.to_string();
            assert!(
                text.contains("none/log: ") && text.contains("make the folder"),
                "{text}"
            );
        }
        assert!(fs::metadata(folder.path().join("none")).is_err());
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut sink = Sink::open(LogOutput::File("/dev/full".into())).unwrap();
        let (written, result) = sink.write(b"1\n");
        assert_eq!((written, result.is_err()), (0, true));
    }
}
