//! Triggers of a reload: `POST /reload`, SIGHUP, and changed files (CRT-8).

use super::{
    context::{ControlContext, Reload},
    fault::ApiFault,
};
use crate::clock::LogTime;
use serde_json::{Value, json};
use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::signal::unix::Signal;

/// `POST /reload`.
pub(super) async fn asked(context: &ControlContext) -> Result<Value, ApiFault> {
    let Some(own) = &context.reload else {
        return Err(ApiFault::NotFromFile);
    };
    match reload(own).await {
        Ok(left) => Ok(json!({ "reloaded": true, "needsRestart": left })),
        Err(faults) => Err(ApiFault::Configuration(faults)),
    }
}

async fn reload(reload: &Arc<dyn Reload>) -> Result<Vec<&'static str>, Vec<String>> {
    let reload = Arc::clone(reload);
    let reloading = tokio::task::spawn_blocking(move || reload.reload());
    reloading
        .await
        .unwrap_or_else(|error| Err(vec![format!("the reload was interrupted: {error}")]))
}

/// Reloads at each SIGHUP. The reload itself logs and counts its result.
pub(super) async fn at_hangup(context: &ControlContext, hangup: Option<Signal>) {
    if let (Some(own), Some(mut hangup)) = (&context.reload, hangup) {
        while hangup.recv().await.is_some() {
            drop(reload(own).await);
        }
    }
    std::future::pending::<()>().await;
}

/// The time without a change after which a file that changed during the start is read, where files are not watched.
const STABLE: Duration = Duration::from_secs(1);

/// The most that a file system's clock is behind the machine's.
const BEHIND: Duration = Duration::from_millis(10);

/// Reloads when a file has changed and is stable, so that a file is not read while it is being written.
pub(super) async fn when_changed(context: &ControlContext) {
    if let Some(own) = &context.reload {
        watch(own, context.watch).await;
    }
    std::future::pending::<()>().await;
}

/// Reloads when a file has changed for `every`; without it, only if a file changed during the start, which this ends with.
async fn watch(own: &Arc<dyn Reload>, every: Option<Duration>) {
    let mut before = look(own).await;
    // A file that changed after the gateway began to read its configuration is perhaps not the one that it read: a change during
    // the start, or during an upgrade, must not be lost.
    let since = own.read_since();
    let mut used = before.clone();
    used.retain(|file| !is_newer(file, since));
    while every.is_some() || before != used {
        tokio::time::sleep(every.unwrap_or(STABLE)).await;
        let now = look(own).await;
        if now == used || now != before {
            before = now;
            continue;
        }
        drop(reload(own).await);
        before = look(own).await;
        // What changed during the reload was read as it was before, or as it was meanwhile: it is read again.
        used = if before == now { now } else { Vec::new() };
    }
}

/// The state of a file: path, inode, length, and modification time in nanoseconds.
type FileState = (PathBuf, Option<(u64, u64, i128, i128)>);

async fn look(own: &Arc<dyn Reload>) -> Vec<FileState> {
    let files = own.files();
    let looking = tokio::task::spawn_blocking(move || file_states(&files));
    looking.await.unwrap_or_default()
}

fn file_states(files: &[PathBuf]) -> Vec<FileState> {
    let mut found = Vec::new();
    for path in files {
        // A link that leads elsewhere and back has changed, though the files behind it are those of before.
        let links = path.ancestors().filter(|part| part.is_symlink());
        found.extend(links.map(|link| (link.to_owned(), state_of(fs::symlink_metadata(link)))));
        found.push(file_state(path));
        if let Ok(entries) = fs::read_dir(path) {
            let mut inside: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            inside.sort();
            found.extend(inside.iter().map(|path| file_state(path)));
        }
    }
    found
}

/// Whether the file's content or name changed after this time.
fn is_newer((_, seen): &FileState, since: LogTime) -> bool {
    let since = Duration::from_millis(since.unix_milliseconds()).saturating_sub(BEHIND);
    let since = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
    seen.is_some_and(|(.., changed)| changed >= since)
}

fn file_state(path: &Path) -> FileState {
    // Symbolic links are followed: the target is the file that is read.
    (path.to_owned(), state_of(fs::metadata(path)))
}

fn state_of(found: io::Result<Metadata>) -> Option<(u64, u64, i128, i128)> {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let found = found.ok()?;
    Some((
        found.ino(),
        found.len(),
        nanoseconds(found.mtime(), found.mtime_nsec()),
        nanoseconds(found.ctime(), found.ctime_nsec()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    #[derive(Debug)]
    struct Counting {
        file: PathBuf,
        since: LogTime,
        reloads: AtomicUsize,
    }

    impl Reload for Counting {
        fn reload(&self) -> Result<Vec<&'static str>, Vec<String>> {
            self.reloads.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }

        fn files(&self) -> Vec<PathBuf> {
            vec![self.file.clone()]
        }

        fn read_since(&self) -> LogTime {
            self.since
        }
    }

    /// A file that is written for a while: it has another length at each of the first looks.
    #[cfg(feature = "sandbox")]
    #[derive(Debug)]
    struct Growing {
        file: PathBuf,
        looks: AtomicUsize,
        reloads: AtomicUsize,
    }

    #[cfg(feature = "sandbox")]
    impl Reload for Growing {
        fn reload(&self) -> Result<Vec<&'static str>, Vec<String>> {
            self.reloads.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }

        fn files(&self) -> Vec<PathBuf> {
            let looks = self.looks.fetch_add(1, Ordering::Relaxed);
            if looks <= 5 {
                fs::write(&self.file, "x".repeat(looks)).unwrap();
            }
            vec![self.file.clone()]
        }

        fn read_since(&self) -> LogTime {
            LogTime::from_unix_milliseconds(u64::MAX)
        }
    }

    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_file_is_read_once_when_it_is_stable() {
        const EVERY: Duration = Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        let own = Arc::new(Growing {
            file: folder.path().join("a"),
            looks: AtomicUsize::new(0),
            reloads: AtomicUsize::new(0),
        });
        let reload: Arc<dyn Reload> = Arc::<Growing>::clone(&own);
        // It grows until the fifth look after the first one, and is stable at the sixth.
        for (looks, reloads) in [(5, 0), (9, 1)] {
            own.looks.store(0, Ordering::Relaxed);
            let watching = watch(&reload, Some(EVERY));
            let within = EVERY * looks + EVERY / 2;
            assert!(tokio::time::timeout(within, watching).await.is_err());
            let looked = u32::try_from(own.looks.load(Ordering::Relaxed)).unwrap();
            // Once more after a reload.
            assert_eq!(looked, looks + 1 + reloads);
            let reloaded = u32::try_from(own.reloads.load(Ordering::Relaxed)).unwrap();
            assert_eq!(reloaded, reloads);
        }
    }

    /// A link that leads to another file while it is read for the first time, and back then.
    #[cfg(feature = "sandbox")]
    #[derive(Debug)]
    struct Swapping {
        link: PathBuf,
        read: Mutex<Vec<PathBuf>>,
    }

    #[cfg(feature = "sandbox")]
    impl Swapping {
        fn lead(&self, to: &str) {
            let new = self.link.with_extension("new");
            std::os::unix::fs::symlink(to, &new).unwrap();
            fs::rename(new, &self.link).unwrap();
        }
    }

    #[cfg(feature = "sandbox")]
    impl Reload for Swapping {
        fn reload(&self) -> Result<Vec<&'static str>, Vec<String>> {
            let mut read = self.read.lock().unwrap();
            let is_first = read.is_empty();
            if is_first {
                thread::sleep(4 * BEHIND);
                self.lead("two");
            }
            read.push(fs::read_link(&self.link).unwrap());
            if is_first {
                self.lead("one");
            }
            Ok(Vec::new())
        }

        fn files(&self) -> Vec<PathBuf> {
            // Of a file behind the link, as a bundle has them.
            vec![self.link.join("bundle.yaml")]
        }

        fn read_since(&self) -> LogTime {
            LogTime::from_unix_milliseconds(0)
        }
    }

    /// What is in use at the end is what the link leads to.
    //= CRT-8 accepted
    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_change_during_a_reload_is_not_lost() {
        const EVERY: Duration = Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("bundle.yaml"), name).unwrap();
        }
        let own = Arc::new(Swapping {
            link: folder.path().join("link"),
            read: Mutex::default(),
        });
        own.lead("one");
        let reload: Arc<dyn Reload> = Arc::<Swapping>::clone(&own);
        let watching = watch(&reload, Some(EVERY));
        assert!(tokio::time::timeout(8 * EVERY, watching).await.is_err());
        let read = own.read.lock().unwrap();
        assert_eq!(*read, [PathBuf::from("two"), PathBuf::from("one")]);
    }

    /// A file that was replaced after it was read, and before the watch began.
    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_change_during_the_start_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "1").unwrap();
        fs::write(folder.path().join("b"), "22").unwrap();
        thread::sleep(4 * BEHIND);
        let since = Clock::System.log_time();
        for (is_replaced, expected) in [(false, 0), (true, 1)] {
            if is_replaced {
                fs::rename(folder.path().join("b"), &file).unwrap();
            }
            for every in [None, Some(Duration::from_millis(10))] {
                let own = Arc::new(Counting {
                    file: file.clone(),
                    since,
                    reloads: AtomicUsize::new(0),
                });
                let reload: Arc<dyn Reload> = Arc::<Counting>::clone(&own);
                let watching = watch(&reload, every);
                let ended = tokio::time::timeout(2 * STABLE, watching).await;
                assert_eq!(ended.is_ok(), every.is_none());
                assert_eq!(own.reloads.load(Ordering::Relaxed), expected);
            }
        }
    }

    #[test]
    fn a_change_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("a"), folder.path().join("certs"));
        fs::write(&file, "1").unwrap();
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("b"), "1").unwrap();
        let files = [file.clone(), inner.clone(), folder.path().join("none")];
        let mut before = file_states(&files);
        assert_eq!(before, file_states(&files));
        let changes: [&dyn Fn(); 5] = [
            &|| fs::write(&file, "22").unwrap(),
            &|| fs::write(inner.join("b"), "22").unwrap(),
            &|| fs::write(inner.join("c"), "1").unwrap(),
            &|| fs::rename(inner.join("c"), &file).unwrap(),
            &|| fs::write(folder.path().join("none"), "1").unwrap(),
        ];
        for change in changes {
            change();
            let after = file_states(&files);
            assert_ne!(before, after);
            before = after;
        }
    }
}
