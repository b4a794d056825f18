//! Metrics of the disks that the gateway writes to: the bytes that are free for it in each folder. A folder that cannot be asked is left out.

use super::{
    samples::{Families, number},
    table,
};
use crate::expiring::{Expiring, Finding};
use rustix::fs::statvfs;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The folders that the gateway writes to, by what they are for.
#[derive(Clone, Debug, Default)]
pub struct WrittenFolders(BTreeMap<Expiring, Vec<PathBuf>>);

/// The room on the disk of a folder, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    /// What a process without privileges may still write.
    free: u64,
    size: u64,
}

impl WrittenFolders {
    /// Adds a folder. Of several for the same, the metric shows the one with the least free bytes.
    #[must_use]
    pub fn with(mut self, of: Expiring, folder: &Path) -> Self {
        self.0.entry(of).or_default().push(folder.to_owned());
        self
    }

    /// The disks that are full, or nearly. A folder that does not exist yet is judged by the one above it.
    pub fn findings(&self) -> Vec<Finding> {
        let each = self.0.iter();
        let each = each.flat_map(|(of, folders)| folders.iter().map(|folder| (*of, folder)));
        each.filter_map(|(of, folder)| {
            let Room { free, size } = folder.ancestors().find_map(room)?;
            let level = of.of_disk(free, size)?;
            let effect = match of.stops_requests() {
                true => "requests are refused when it is full",
                false => "nothing more is written when it is full",
            };
            let text = format!(
                "the disk of {} has {} MiB left of {} MiB; {effect}",
                folder.display(),
                free >> 20,
                size >> 20
            );
            Some(Finding { of, level, text })
        })
        .collect()
    }

    /// The bytes that are free in the folders for each.
    fn free(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().filter_map(|(of, folders)| {
            let rooms = folders.iter().filter_map(|folder| room(folder));
            Some((label(*of), rooms.map(|room| room.free).min()?))
        })
    }
}

/// The name in `portvakt_disk_free_bytes`, which is older than the list of what fills.
fn label(of: Expiring) -> &'static str {
    let name = of.name();
    name.strip_suffix("_disk").unwrap_or(name)
}

/// Adds the samples.
pub(super) fn add(folders: &WrittenFolders, to: &mut Families) {
    let samples = folders.free().map(|(of, free)| ([of], number(free)));
    to.each(&table::DISK_FREE, samples);
}

fn room(folder: &Path) -> Option<Room> {
    let path = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let disk = statvfs(path).ok()?;
    Some(Room {
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
        size: disk.f_blocks.saturating_mul(disk.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_with_the_least_place_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let proc = Path::new("/proc");
        assert_eq!(
            room(proc),
            Some(Room { free: 0, size: 0 }),
            "a file system without a disk"
        );
        let folders = WrittenFolders::default()
            .with(Expiring::LogsDisk, folder.path())
            .with(Expiring::LogsDisk, proc)
            .with(Expiring::AuditDisk, &missing)
            .with(Expiring::StateDisk, folder.path());
        let found: BTreeMap<_, _> = folders.free().collect();
        assert_eq!(found.keys().collect::<Vec<_>>(), [&"logs", &"state"]);
        assert_eq!(found["logs"], 0);
        let disk = statvfs(folder.path()).unwrap();
        assert!(found["state"] <= disk.f_blocks * disk.f_frsize);
    }
}
