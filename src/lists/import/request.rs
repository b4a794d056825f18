//! What is asked of an import.

use crate::{certificate::Certificate, second::Verifiers};
use portvakt_base::clock::Timestamp;
use std::{collections::BTreeSet, path::PathBuf};

/// What is imported.
#[derive(Clone, Debug)]
pub struct Request {
    /// The file of the list of lists.
    pub list_of_lists: PathBuf,
    /// The certificates of those who may sign it, as the Official Journal names them.
    pub pins: Vec<Certificate>,
    /// The files of national lists and of pivots; others may be among them.
    pub lists: Vec<PathBuf>,
    /// Countries whose lists are left out.
    pub leave_out: BTreeSet<String>,
    /// The time as of which lists and services are judged.
    pub at: Timestamp,
    /// Who verifies signatures.
    pub verifiers: Verifiers,
}
