use super::*;
use std::{fs, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

const ID: [u8; 4] = 7_u32.to_be_bytes();

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/token.keys.seals");
    (folder, path)
}

fn write(path: &Path, text: &str) {
    private_file::make_folder_of(path).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn counter(path: &Path) -> Arc<Counter> {
    Seals::open(path).unwrap().counter(ID)
}

#[test]
fn a_count_is_never_too_low() {
    let (_folder, path) = place();
    let first = counter(&path);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    let mut used = 0;
    for _ in 0..3_000 {
        first.take().unwrap();
        used += 1;
        assert_eq!(first.count(), used);
        // A process that starts now, after a crash, counts at least as many seals.
        if used % 500 == 1 {
            assert!(counter(&path).count() >= used);
        }
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "00000007 3072\n");
    let second = counter(&path);
    assert_eq!(second.count(), 3_072);
    second.take().unwrap();
    assert_eq!(second.count(), 3_073);
    // The first process reads the count of the second.
    for _ in 0..100 {
        first.take().unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "00000007 8192\n");
    // A removed file is created again, and the count is not lost.
    fs::remove_file(&path).unwrap();
    while fs::metadata(&path).is_err() {
        first.take().unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "00000007 16384\n");
}

#[test]
fn at_the_limit_nothing_is_sealed() {
    let (_folder, path) = place();
    write(&path, &format!("00000009 5\n00000007 {}\n", MOST_SEALS - 3));
    let full = counter(&path);
    assert_eq!(full.health(), Ok(()));
    for _ in 0..3 {
        full.take().unwrap();
    }
    for _ in 0..3 {
        assert_eq!(full.take(), Err(SealFault::UsedUp(7)));
        assert_eq!(full.health(), Err(SealFault::UsedUp(7)));
        assert_eq!(full.count(), MOST_SEALS);
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("00000009 5\n00000007 {MOST_SEALS}\n"));
    // The limit also holds after a restart, and is known before the first seal.
    let again = Seals::open(&path).unwrap();
    let full = again.counter(ID);
    assert_eq!(full.health(), Err(SealFault::UsedUp(7)));
    // Another key has a count of its own.
    assert_eq!(again.counter(9_u32.to_be_bytes()).take(), Ok(()));
}

#[test]
fn many_threads_and_processes_share_the_places() {
    let (_folder, path) = place();
    write(&path, &format!("00000007 {}\n", MOST_SEALS - 10_000));
    let counters = [counter(&path), counter(&path)];
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let own = Arc::clone(&counters[number % 2]);
                scope.spawn(move || (0..2_000).filter(|_| own.take().is_ok()).count())
            })
            .collect();
        threads.into_iter().map(|own| own.join().unwrap()).sum()
    });
    // One process cannot take the seals that another process has reserved.
    let left = counters.iter().map(|own| {
        let more = std::iter::from_fn(|| own.take().ok());
        more.count()
    });
    assert_eq!(taken + left.sum::<usize>(), 10_000);
}

#[test]
fn a_count_that_cannot_be_kept_seals_nothing_until_it_can() {
    let (_folder, path) = place();
    let own = counter(&path);
    write(&path, "nonsense\n");
    assert!(matches!(own.take(), Err(SealFault::NotKept(_))));
    assert!(matches!(own.health(), Err(SealFault::NotKept(_))));
    assert_eq!(own.count(), 0);
    write(&path, "");
    assert_eq!(own.health(), Ok(()));
    assert_eq!(own.take(), Ok(()));
}

#[test]
fn files_of_counts() {
    let (folder, path) = place();
    for (text, line) in [
        ("00000007", 1),
        ("00000007 1\n0000007 1\n", 2),
        ("00000007 +1\n", 1),
        ("00000007 \n", 1),
        ("\n", 1),
        ("0000000A 1\n", 1),
        ("00000007 99999999999999999999\n", 1),
    ] {
        write(&path, text);
        let fault = Seals::open(&path).unwrap_err();
        assert!(
            matches!(fault, SealsFault::Line(at) if at == line),
            "{text}"
        );
    }
    // If a key has two lines, the larger count applies.
    write(&path, "00000007 5\n00000007 3\n");
    assert_eq!(counter(&path).count(), 5);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Seals::open(&path), Err(SealsFault::File(_))));
    assert!(Seals::open(&folder.path().join("state/token.keys.seals/x")).is_err());
}
