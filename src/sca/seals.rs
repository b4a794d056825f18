//! How often each key has sealed. Nonces are random, so at most 2³² tokens are safe under one key (NIST SP 800-38D, 8.3).
//!
//! A file beside the keys has a line for each key: its id, a space and a number. A gateway reserves seals there in
//! blocks, durably, before it uses the first of a block: the number is never below the truth, and it is above it by at
//! most a block for each start. Processes that share the file take turns; gateways on other machines have files of their
//! own, and the sum of all counts. Invariants: nothing is sealed without a place in a block, a number never goes down,
//! and at the limit there is no other block. Deliberately not here: sealing, and the rotation that a full key needs.

use super::keys::ID_LENGTH;
use crate::private_file;
use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The most tokens of one key.
pub const MOST_SEALS: u64 = 1 << 32;

/// From so many on the operator is warned: half of a key is used up.
pub const SEALS_ALERT: u64 = 1 << 31;

/// The first block of a start. It is small, so that a gateway that starts again and again uses up little.
const FIRST_BLOCK: u64 = 1 << 10;

/// Blocks double up to this size: at 1 000 tokens a second the file is written about once a minute.
const LARGEST_BLOCK: u64 = 1 << 16;

/// The most bytes of a file: a year has two keys, a line at most 20 bytes.
const MAX_FILE: usize = 64 * 1024;

/// Why nothing is sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// The key has sealed as often as is safe.
    #[error(
        "the token key {0:08x} has sealed 2^32 tokens and seals no more: run \"portvakt sca rotate-key\" (docs/sca.md)"
    )]
    UsedUp(u32),
    /// The count cannot be written.
    #[error("the count of seals cannot be kept: {0}")]
    NotKept(String),
    /// The machine gives no random numbers, or a text is too long for a token.
    #[error("the token cannot be made")]
    NotMade,
}

/// Why a file of counts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealsFault {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] private_file::Fault),
    /// It cannot be written.
    #[error("{0}")]
    Written(#[from] io::Error),
    /// A line is no count.
    #[error(
        "line {0} is no count of seals; expected eight hexadecimal digits in lower case, a space, and a number"
    )]
    Line(usize),
    /// It is no text, or too long.
    #[error("it is no file of counts: it is no text, or longer than {MAX_FILE} bytes")]
    NotCounts,
}

/// The counts of a gateway's keys.
#[derive(Debug)]
pub(super) struct Seals {
    /// None where nothing outlives the process: in tests, and for what seals nothing that counts.
    file: Option<PathBuf>,
    /// What the file held when it was opened.
    found: Vec<(u32, u64)>,
    counters: Mutex<Vec<Arc<Counter>>>,
}

impl Seals {
    /// The counts of a file, which is made where there is none. It is written as a block is reserved, so that a place that
    /// cannot be written shows at the start.
    pub(super) fn open(path: &Path) -> Result<Self, SealsFault> {
        private_file::make_folder_of(path)?;
        let _turn = take_turn(path)?;
        let found = read(path)?;
        private_file::replace(path, text_of(&found).as_bytes())?;
        Ok(Self {
            file: Some(path.to_owned()),
            found,
            counters: Mutex::default(),
        })
    }

    /// Counts that end with the process.
    pub(super) fn in_memory() -> Self {
        Self {
            file: None,
            found: Vec::new(),
            counters: Mutex::default(),
        }
    }

    /// Whether these are the counts of a file.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.file.as_deref() == Some(path)
    }

    /// The counter of a key: one for all who ask.
    pub(super) fn counter(&self, id: [u8; ID_LENGTH]) -> Arc<Counter> {
        let id = u32::from_be_bytes(id);
        let mut counters = locked(&self.counters);
        if let Some(counter) = counters.iter().find(|counter| counter.id == id) {
            return Arc::clone(counter);
        }
        let counter = Arc::new(Counter {
            id,
            file: self.file.clone(),
            taken: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            total: AtomicU64::new(count_of(&self.found, id)),
            reserving: Mutex::new(Reserving {
                block: FIRST_BLOCK,
                fault: None,
            }),
        });
        counters.push(Arc::clone(&counter));
        counter
    }
}

/// The count of one key.
pub(super) struct Counter {
    id: u32,
    file: Option<PathBuf>,
    /// What was used since the start.
    taken: AtomicU64,
    /// What was reserved since the start.
    reserved: AtomicU64,
    /// What was reserved ever, by all who share the file, as of the last look at it.
    total: AtomicU64,
    reserving: Mutex<Reserving>,
}

struct Reserving {
    /// The size of the next block.
    block: u64,
    /// Why the last attempt failed, if it did.
    fault: Option<SealFault>,
}

impl Counter {
    /// Takes one seal: what is sealed now has its place in a block.
    pub(super) fn take(&self) -> Result<(), SealFault> {
        // Taken first and then looked at: two threads never share a place.
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        if place < self.reserved.load(Ordering::Acquire) {
            return Ok(());
        }
        self.reserve(place).inspect_err(|_| {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        })
    }

    /// Whether the next seal can be had, as far as is known. What failed is tried again.
    pub(super) fn health(&self) -> Result<(), SealFault> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken < self.reserved.load(Ordering::Acquire) {
            return Ok(());
        }
        let has_failed = locked(&self.reserving).fault.is_some();
        if has_failed || self.total.load(Ordering::Relaxed) >= MOST_SEALS {
            return self.reserve(taken);
        }
        Ok(())
    }

    /// How often the key has sealed, as far as the file knows: never too low.
    pub(super) fn count(&self) -> u64 {
        let reserved = self.reserved.load(Ordering::Acquire);
        let unused = reserved.saturating_sub(self.taken.load(Ordering::Relaxed));
        self.total.load(Ordering::Relaxed).saturating_sub(unused)
    }

    /// The key's id, as its file writes it.
    pub(super) fn key(&self) -> String {
        format!("{:08x}", self.id)
    }

    /// Reserves blocks until there is a place.
    fn reserve(&self, place: u64) -> Result<(), SealFault> {
        let mut reserving = locked(&self.reserving);
        while self.reserved.load(Ordering::Relaxed) <= place {
            match self.reserve_block(reserving.block) {
                Ok(block) => {
                    reserving.block = reserving.block.saturating_mul(2).min(LARGEST_BLOCK);
                    reserving.fault = None;
                    self.reserved.fetch_add(block, Ordering::Release);
                }
                Err(fault) => {
                    if reserving.fault.as_ref() != Some(&fault) {
                        tracing::error!(%fault, "no SCA can be started");
                    }
                    reserving.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// Reserves one block, durably; how large it is, which is smaller than `most` only before the limit.
    fn reserve_block(&self, most: u64) -> Result<u64, SealFault> {
        let not_kept = |fault: SealsFault| SealFault::NotKept(fault.to_string());
        let _turn = match &self.file {
            Some(path) => Some(take_turn(path).map_err(|error| not_kept(error.into()))?),
            None => None,
        };
        let mut counts = match &self.file {
            Some(path) => read(path).map_err(not_kept)?,
            None => Vec::new(),
        };
        // A file that was removed does not take the count with it.
        let before = count_of(&counts, self.id).max(self.total.load(Ordering::Relaxed));
        let block = most.min(MOST_SEALS.saturating_sub(before));
        if block == 0 {
            return Err(SealFault::UsedUp(self.id));
        }
        let after = before.saturating_add(block);
        if let Some(path) = &self.file {
            counts.retain(|(id, _)| *id != self.id);
            counts.push((self.id, after));
            private_file::replace(path, text_of(&counts).as_bytes())
                .map_err(|error| not_kept(error.into()))?;
        }
        self.total.store(after, Ordering::Relaxed);
        if before < SEALS_ALERT && after >= SEALS_ALERT {
            let key = self.key();
            tracing::warn!(key, "a token key has sealed 2^31 tokens: rotate the keys");
        }
        Ok(block)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Counter({}: {})", self.key(), self.count())
    }
}

/// One process at a time reads and writes the file. The folder is locked, since the file is replaced; the lock ends with
/// what is returned.
fn take_turn(path: &Path) -> io::Result<File> {
    let folder = File::open(private_file::folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

/// Whether a file of counts can be used, or is still to be made.
///
/// # Errors
/// Why it cannot be used.
pub fn check(path: &Path) -> Result<(), SealsFault> {
    read(path).map(drop)
}

/// The counts that a file holds; none where there is none.
fn read(path: &Path) -> Result<Vec<(u32, u64)>, SealsFault> {
    let bytes = match private_file::read(path, MAX_FILE) {
        Err(fault) if fault.is_missing() => return Ok(Vec::new()),
        read => read?,
    };
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| text.len() <= MAX_FILE);
    let text = text.ok_or(SealsFault::NotCounts)?;
    let lines = text.lines().zip(1..);
    lines
        .map(|(line, number)| parse(line).ok_or(SealsFault::Line(number)))
        .collect()
}

fn parse(line: &str) -> Option<(u32, u64)> {
    let (id, count) = line.split_once(' ')?;
    let is_id = id.len() == 2 * ID_LENGTH
        && id
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let id = u32::from_str_radix(id, 16).ok().filter(|_| is_id)?;
    let is_count = count.bytes().all(|byte| byte.is_ascii_digit());
    Some((id, count.parse().ok().filter(|_| is_count)?))
}

/// What a file of these counts holds.
fn text_of(counts: &[(u32, u64)]) -> String {
    let lines = counts.iter();
    lines
        .map(|(id, count)| format!("{id:08x} {count}\n"))
        .collect()
}

/// The largest count of a key.
fn count_of(counts: &[(u32, u64)], id: u32) -> u64 {
    let own = counts.iter().filter(|(other, _)| *other == id);
    own.map(|(_, count)| *count).max().unwrap_or(0)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
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
            // Whoever starts now, after a crash, counts at least as much.
            if used % 500 == 1 {
                assert!(counter(&path).count() >= used);
            }
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "00000007 3072\n");
        let second = counter(&path);
        assert_eq!(second.count(), 3_072);
        second.take().unwrap();
        assert_eq!(second.count(), 3_073);
        // The first does not fall behind what the second wrote.
        for _ in 0..100 {
            first.take().unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "00000007 8192\n");
        // A file that is gone is made again, and takes no count with it.
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
        // Nor after a start, and it is known before anyone asks.
        let again = Seals::open(&path).unwrap();
        let full = again.counter(ID);
        assert_eq!(full.health(), Err(SealFault::UsedUp(7)));
        // Another key is another count.
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
        // What one of the two has reserved the other cannot take.
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
        // Of two lines for one key the larger counts.
        write(&path, "00000007 5\n00000007 3\n");
        assert_eq!(counter(&path).count(), 5);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Seals::open(&path), Err(SealsFault::File(_))));
        assert!(Seals::open(&folder.path().join("state/token.keys.seals/x")).is_err());
    }
}
