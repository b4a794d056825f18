//! Triggers of a reload: `POST /reload`, SIGHUP, and changed files (CRT-8).

use super::{
    context::{ControlContext, Reload},
    fault::ApiFault,
};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::signal::unix;

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

/// Reloads at each SIGHUP, whose default action would end the process.
pub(super) async fn at_hangup(context: &ControlContext) {
    match unix::signal(unix::SignalKind::hangup()) {
        // The reload itself logs and counts its result.
        Ok(mut hangups) => {
            while hangups.recv().await.is_some() {
                match &context.reload {
                    Some(own) => drop(reload(own).await),
                    None => {
                        tracing::warn!("SIGHUP ignored: the configuration did not come from a file")
                    }
                }
            }
        }
        Err(error) => tracing::error!(%error, "SIGHUP cannot be caught"),
    }
    std::future::pending::<()>().await;
}

/// Reloads when a file has changed and is stable, so that a file is not read while it is being written.
pub(super) async fn when_changed(context: &ControlContext) {
    let (Some(every), Some(own)) = (context.watch, &context.reload) else {
        return std::future::pending().await;
    };
    let mut used = look(own).await;
    let mut before = used.clone();
    loop {
        tokio::time::sleep(every).await;
        let now = look(own).await;
        if now != used && now == before {
            drop(reload(own).await);
            used.clone_from(&now);
        }
        before = now;
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
        found.push(file_state(path));
        if let Ok(entries) = fs::read_dir(path) {
            let mut inside: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            inside.sort();
            found.extend(inside.iter().map(|path| file_state(path)));
        }
    }
    found
}

fn file_state(path: &Path) -> FileState {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    // Symbolic links are followed: the target is the file that is read.
    let seen = fs::metadata(path).ok().map(|found| {
        (
            found.ino(),
            found.len(),
            nanoseconds(found.mtime(), found.mtime_nsec()),
            nanoseconds(found.ctime(), found.ctime_nsec()),
        )
    });
    (path.to_owned(), seen)
}

#[cfg(test)]
mod tests {
    use super::*;

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
