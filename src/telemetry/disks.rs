//! Metrics of the disks that the gateway writes to: the bytes that are free for it in each folder. A folder that cannot be asked is left out.

use super::{
    samples::{Families, number},
    table,
    values::FolderUse,
};
use rustix::fs::statvfs;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The folders that the gateway writes to, by what they are for.
#[derive(Clone, Debug, Default)]
pub struct WrittenFolders(BTreeMap<FolderUse, Vec<PathBuf>>);

impl WrittenFolders {
    /// Adds a folder. Of several with the same use, the metric shows the one with the least free bytes.
    #[must_use]
    pub fn with(mut self, what: FolderUse, folder: &Path) -> Self {
        self.0.entry(what).or_default().push(folder.to_owned());
        self
    }

    /// The bytes that are free in the folders for each.
    fn free(&self) -> impl Iterator<Item = (FolderUse, u64)> {
        let folders = self.0.iter();
        folders.filter_map(|(what, folders)| {
            let free = folders.iter().filter_map(|folder| free(folder));
            Some((*what, free.min()?))
        })
    }
}

/// Adds the samples.
pub(super) fn add(folders: &WrittenFolders, to: &mut Families) {
    let samples = folders.free().map(|(what, free)| (what, number(free)));
    to.each(&table::DISK_FREE, samples);
}

/// The bytes that a process without privileges may still write.
fn free(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_with_the_least_place_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let proc = Path::new("/proc");
        assert_eq!(free(proc), Some(0), "a file system without a disk");
        let folders = WrittenFolders::default()
            .with(FolderUse::Logs, folder.path())
            .with(FolderUse::Logs, proc)
            .with(FolderUse::Audit, &missing)
            .with(FolderUse::State, folder.path());
        let found: BTreeMap<_, _> = folders.free().collect();
        let uses: Vec<_> = found.keys().copied().collect();
        assert_eq!(uses, [FolderUse::State, FolderUse::Logs]);
        assert_eq!(found[&FolderUse::Logs], 0);
        let disk = statvfs(folder.path()).unwrap();
        assert!(found[&FolderUse::State] <= disk.f_blocks * disk.f_frsize);
    }
}
