//! The limit of memory that the kernel sets for this process: that of its control group.
//!
//! Deliberately not here: the memory of the machine, which other processes use too.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The limit in bytes; `None` if there is none.
pub(super) fn limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, Path::new("/sys/fs/cgroup"))
}

/// The smallest limit of the groups of /proc/self/cgroup (cgroups(7)) and of those above them. Each line is `number:controllers:path`. Version
/// 2 has no controllers in its line, version 1 a folder for `memory`. In a container, the folder is that of its own group already, so that
/// the path may not exist below it.
fn limit_of(groups: &str, folder: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (folder.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (folder.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let own = root.join(path.trim_start_matches('/'));
        let above = own.ancestors().take_while(|above| above.starts_with(&root));
        let above: Vec<PathBuf> = above.map(Path::to_owned).collect();
        above
            .iter()
            .filter_map(|group| number(&group.join(file)))
            .min()
    });
    // Version 1 writes no limit as the largest multiple of a page.
    limits.min().filter(|limit| *limit < u64::MAX >> 2)
}

/// `max` is no limit.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let of = |groups: &str| limit_of(groups, folder.path());
        write("system.slice/memory.max", "1000\n");
        write("system.slice/portvakt.service/memory.max", "max\n");
        assert_eq!(of("0::/system.slice/portvakt.service\n"), Some(1_000));
        write("system.slice/portvakt.service/memory.max", "900\n");
        assert_eq!(of("0::/system.slice/portvakt.service\n"), Some(900));
        assert_eq!(of("0::/other.slice\n"), None);
        write("memory.max", "500\n");
        assert_eq!(of("0::/gone\n"), Some(500), "a container's own group");
        write("memory/a/memory.limit_in_bytes", "300\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(of("4:cpu:/a\n3:memory,hugetlb:/a\n"), Some(300));
        assert_eq!(of("3:memory:/b\n"), None);
    }
}
