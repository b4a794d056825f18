//! Metrics of the disks that the gateway writes to: the bytes that are free for it in each folder, and the disk's size. A folder that cannot
//! be asked is left out.

use super::{
    samples::{Families, number},
    table,
    values::FolderUse,
};
use crate::expiring::{Expiring, Finding};
use rustix::fs::statvfs;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The folders that the gateway writes to, by what they are for.
#[derive(Clone, Debug, Default)]
pub struct WrittenFolders(BTreeMap<FolderUse, Vec<PathBuf>>);

/// The room on the disk of a folder, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    /// What a process without privileges may still write.
    free: u64,
    size: u64,
}

impl FolderUse {
    const fn fills(self) -> Expiring {
        match self {
            Self::State => Expiring::StateDisk,
            Self::Audit => Expiring::AuditDisk,
            Self::Logs => Expiring::LogsDisk,
            Self::Copies => Expiring::CopiesDisk,
        }
    }
}

impl WrittenFolders {
    /// Adds a folder. Of several with the same use, the metric shows the one with the least free bytes.
    #[must_use]
    pub fn with(mut self, what: FolderUse, folder: &Path) -> Self {
        self.0.entry(what).or_default().push(folder.to_owned());
        self
    }

    /// The disks that are full, or nearly. A folder that does not exist yet is judged by the one above it.
    pub fn findings(&self) -> Vec<Finding> {
        let each = self.0.iter();
        let each =
            each.flat_map(|(what, folders)| folders.iter().map(|folder| (what.fills(), folder)));
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

    /// The room in the folders for each: that of the disk with the least free bytes.
    fn rooms(&self) -> BTreeMap<FolderUse, Room> {
        let folders = self.0.iter();
        let least = folders.filter_map(|(what, folders)| {
            let rooms = folders.iter().filter_map(|folder| room(folder));
            Some((*what, rooms.min()?))
        });
        least.collect()
    }
}

/// Adds the samples.
pub(super) fn add(folders: &WrittenFolders, to: &mut Families) {
    let rooms = folders.rooms();
    let each = rooms.iter();
    to.each(
        &table::DISK_FREE,
        each.clone().map(|(what, room)| (*what, number(room.free))),
    );
    to.each(
        &table::DISK_SIZE,
        each.map(|(what, room)| (*what, number(room.size))),
    );
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
            .with(FolderUse::Logs, folder.path())
            .with(FolderUse::Logs, proc)
            .with(FolderUse::Audit, &missing)
            .with(FolderUse::State, folder.path());
        let found = folders.rooms();
        let uses: Vec<_> = found.keys().copied().collect();
        assert_eq!(uses, [FolderUse::State, FolderUse::Logs]);
        assert_eq!(found[&FolderUse::Logs].free, 0);
        let disk = statvfs(folder.path()).unwrap();
        let Room { free, size } = found[&FolderUse::State];
        assert_eq!(size, disk.f_blocks * disk.f_frsize);
        assert!(free <= size);
    }
}
