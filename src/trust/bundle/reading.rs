//! Reading `bundle.yaml`: its format, its schema, and that it does not contradict itself. Invariant: each fault has its line.

use super::{
    contradiction::{Contradiction, judge_document},
    document::BundleDocument,
    fault::{DOCUMENT, DocumentFault, FORMAT},
    lines::{Lines, Place},
    parse::parse,
};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::cell::OnceCell;

/// Enough of the file to know its format.
#[derive(Deserialize)]
struct Format {
    format: Spanned<u64>,
}

impl BundleDocument {
    /// Reads the document.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn read(text: &str) -> Result<Self, DocumentFault> {
        // The format comes first: of another one, a key that is unknown here would be no fault.
        let Format { format } = parse(text)?;
        if format.value != FORMAT {
            return Err(DocumentFault::At {
                line: format.referenced.line(),
                fault: Box::new(DocumentFault::Format(format.value)),
            });
        }
        let read: Self = parse(text)?;
        let judged = judge_document(&read);
        judged.map_err(|Contradiction { place, fault }| Lines::read(text).add(place, fault))?;
        Ok(read)
    }

    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// They are not UTF-8; otherwise as [`Self::read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentFault> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = bytes.iter().take(error.valid_up_to());
            let feeds = before.filter(|byte| **byte == b'\n').count();
            let line = u64::try_from(feeds).unwrap_or(u64::MAX).saturating_add(1);
            DocumentFault::NotUtf8 { line }
        })?;
        Self::read(text)
    }

    /// Judges what it says of its times, lists and anchors.
    ///
    /// # Errors
    /// It contradicts itself, or names a file that no import writes.
    pub fn judge(&self) -> Result<(), DocumentFault> {
        judge_document(self).map_err(|found| found.fault)
    }
}

/// A document and its text, by which faults of its anchors get their lines.
#[derive(Debug)]
pub(super) struct ReadDocument {
    /// The document.
    pub(super) document: BundleDocument,
    text: String,
    lines: OnceCell<Lines>,
}

impl ReadDocument {
    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// As [`BundleDocument::from_bytes`].
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, DocumentFault> {
        let document = BundleDocument::from_bytes(&bytes)?;
        Ok(Self {
            document,
            text: String::from_utf8(bytes).unwrap_or_default(),
            lines: OnceCell::new(),
        })
    }

    /// A fault of the anchor with this SHA-256, with the line that lists it.
    pub(super) fn at_anchor(&self, sha256: &str, fault: &str) -> String {
        let mut anchors = self.document.anchors.iter();
        let at = anchors.position(|anchor| anchor.sha256 == sha256);
        let lines = || self.lines.get_or_init(|| Lines::read(&self.text));
        match at.and_then(|at| lines().of(Place::Anchor(at))) {
            Some(line) => format!("{fault} (line {line} of {DOCUMENT})"),
            None => fault.to_owned(),
        }
    }
}
