//! The bounds of the certificates that were seen, their file, and the thread between.

// What came with a certificate.
mod pool;

use super::{
    SeenCertificates, SeenEvent, SeenKeeper,
    file::{self, file_beside},
    keeper::KeptFile,
    record::{Bounds, SeenCertificate, SeenRecord},
};
use crate::{
    clock::{Clock, Timestamp},
    interface::TppId,
    trust::{Anchors, Trust, decode::PresentedCertificates},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};
use portvakt_development_pki as pki;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    sync::{Arc, Mutex},
};

/// 2026-01-01.
const TODAY: u64 = 20_454;

const NOW: Timestamp = Timestamp::from_unix(TODAY * 86_400);

fn seen(tpp: usize, certificate: u8, day: u64) -> SeenCertificate {
    SeenCertificate {
        tpp: TppId::parse(&format!("PSDNO-FSA-{tpp}")).unwrap(),
        day,
        certificates: Arc::new(PresentedCertificates {
            leaf: [&tpp.to_be_bytes()[..], &[certificate]].concat(),
            pool: Vec::new(),
        }),
    }
}

/// TPP, certificate and day of each.
fn shown(record: &SeenRecord) -> Vec<(String, u8, u64)> {
    let all = record.all().map(|seen| {
        let tpp = seen
            .tpp
            .as_str()
            .trim_start_matches("PSDNO-FSA-")
            .to_owned();
        (tpp, *seen.certificates.leaf.last().unwrap(), seen.day)
    });
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

fn small(certificates: usize, of_tpp: usize, bytes: usize) -> SeenRecord {
    SeenRecord::within(Bounds {
        certificates,
        of_tpp,
        bytes,
    })
}

#[test]
fn a_tpp_has_its_share_and_the_oldest_goes_first() {
    let mut record = small(4, 2, 1_000);
    for (tpp, certificate, day) in [(1, 1, 5), (2, 1, 1), (1, 2, 3), (1, 3, 4)] {
        assert!(record.add(seen(tpp, certificate, day)));
    }
    // TPP 1 has its two latest, and took nothing from TPP 2.
    let one = |certificate: u8, day: u64| ("1".to_owned(), certificate, day);
    let two = |certificate: u8, day: u64| ("2".to_owned(), certificate, day);
    assert_eq!(shown(&record), [one(1, 5), one(3, 4), two(1, 1)]);
    // A later day counts, an earlier one does not.
    assert!(!record.add(seen(2, 1, 1)));
    assert!(!record.add(seen(2, 1, 0)));
    assert!(record.add(seen(2, 1, 6)));
    // Beyond the bound of all, the oldest goes.
    record.add(seen(3, 1, 7));
    record.add(seen(4, 1, 7));
    let kept = shown(&record);
    assert_eq!(kept.len(), 4);
    assert_eq!(kept[..2], [one(1, 5), two(1, 6)]);
}

#[test]
fn bytes_are_bounded_too() {
    // Each has nine bytes.
    let mut record = small(100, 100, 30);
    for day in 1..=9 {
        record.add(seen(1, u8::try_from(day).unwrap(), day));
    }
    let days: Vec<_> = shown(&record).into_iter().map(|(_, _, day)| day).collect();
    assert_eq!(days, [7, 8, 9]);
}

#[test]
fn the_bounds_of_a_gateway() {
    let mut record = SeenRecord::default();
    for certificate in 0..=150 {
        record.add(seen(0, certificate, 2));
    }
    assert_eq!(record.all().count(), 100);
    for tpp in 1..=10_000 {
        record.add(seen(tpp, 0, 3));
    }
    assert_eq!(record.all().count(), 10_000);
    assert!(record.all().all(|seen| seen.day == 3));
}

#[test]
fn thirty_days_are_kept() {
    let mut record = SeenRecord::default();
    for (tpp, day) in [
        (1, TODAY - 31),
        (2, TODAY - 30),
        (3, TODAY),
        (4, TODAY + 31),
    ] {
        record.add(seen(tpp, 1, day));
    }
    let two = ["PSDNO-FSA-2", "PSDNO-FSA-3"];
    let tpps: Vec<_> = record.tpps(TODAY).into_iter().collect();
    assert_eq!(tpps.iter().map(TppId::as_str).collect::<Vec<_>>(), two);
    record.forget(TODAY);
    assert_eq!(record.all().count(), 2);
    record.forget(TODAY + 30);
    assert_eq!(record.all().count(), 1);
}

/// A request's certificate and a signature by it.
struct Signing {
    trust: Trust,
    presented: String,
    signature: Vec<u8>,
}

impl Signing {
    fn new() -> Self {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let tpp = root.issue(&pki::LeafSpec::default()).unwrap();
        let key = PKey::private_key_from_pem(tpp.key_pem.as_bytes()).unwrap();
        let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
        let signature = signer.sign_oneshot_to_vec(b"message").unwrap();
        let anchors =
            Anchors::of_operator(vec![X509::from_der(root.der()).unwrap()], vec![]).unwrap();
        Self {
            trust: Trust::new(anchors),
            // With a certificate that helps nobody.
            presented: format!("{}{}", tpp.pem, root.pem()),
            signature,
        }
    }

    /// A request at a time.
    fn note(&self, seen: &SeenCertificates, now: Timestamp) {
        let presented = STANDARD.encode(&self.presented);
        let identified = self.trust.identify(presented.as_bytes(), None, now);
        let identified = identified.unwrap();
        assert!(identified.verify(b"another", &self.signature).is_none());
        let verified = identified.verify(b"message", &self.signature).unwrap();
        self.trust.keep(&verified, None);
        seen.note(&verified, now);
    }
}

#[test]
fn a_verified_signature_is_noted_once_a_day() {
    let (signing, seen) = (Signing::new(), SeenCertificates::default());
    assert!(seen.tpps(NOW).is_empty());
    signing.note(&seen, NOW);
    let tpps: Vec<_> = seen.tpps(NOW).into_iter().collect();
    assert_eq!(tpps.len(), 1);
    // From here the thread's part: what has changed is returned once.
    let (record, is_last) = seen.wait_for_change();
    let record = record.unwrap();
    let noted: Vec<_> = record.all().collect();
    assert_eq!((noted.len(), noted[0].day, is_last), (1, TODAY, false));
    assert_eq!(noted[0].tpp, tpps[0]);
    assert_eq!(noted[0].certificates.pool.len(), 1);
    signing.note(&seen, NOW);
    assert!(!seen.stop(std::time::Duration::ZERO));
    let (record, is_last) = seen.wait_for_change();
    assert!(record.is_none() && is_last);
    let tomorrow = Timestamp::from_unix(NOW.unix() + 86_400);
    signing.note(&seen, tomorrow);
    assert!(seen.wait_for_change().0.is_some());
    let later = Timestamp::from_unix(NOW.unix() + 40 * 86_400);
    assert!(seen.tpps(later).is_empty());
}

#[test]
fn a_file_keeps_them_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_beside(&folder.path().join("state/portvakt.db"));
    let clock = Clock::standing(NOW);
    let new = Arc::new(Mutex::new(0));
    let start = |seen: &Arc<SeenCertificates>| {
        let (seen, new) = (Arc::clone(seen), Arc::clone(&new));
        let on_event = move |event| {
            *new.lock().unwrap() += usize::from(matches!(event, SeenEvent::New(_)));
        };
        SeenKeeper::start(seen, path.clone(), clock.clone(), on_event).unwrap()
    };
    let seen = Arc::new(SeenCertificates::default());
    drop(start(&seen));
    assert!(!path.exists(), "nothing was seen");
    let seen = Arc::new(SeenCertificates::default());
    let keeper = start(&seen);
    Signing::new().note(&seen, NOW);
    drop(keeper);
    assert_eq!(*new.lock().unwrap(), 1);
    let found = file::read(&path).unwrap();
    assert_eq!((found.certificates.len(), found.damaged), (1, 0));
    assert_eq!(found.certificates[0].certificates.pool.len(), 1);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    // The next process has read it when it stops, and does not write what has not changed.
    let seen = Arc::new(SeenCertificates::default());
    drop(start(&seen));
    assert_eq!(seen.tpps(NOW).len(), 1);
    assert_eq!(fs::metadata(&path).unwrap().ino(), metadata.ino());
    // After 30 days, another certificate is noted, and this one forgotten.
    let later = Timestamp::from_unix(NOW.unix() + 31 * 86_400);
    clock.set(later);
    let seen = Arc::new(SeenCertificates::default());
    let keeper = start(&seen);
    let other = self::seen(7, 1, TODAY + 31);
    seen.add(other.clone());
    drop(keeper);
    assert_eq!(file::read(&path).unwrap().certificates, [other]);
    assert_eq!(*new.lock().unwrap(), 2);
}

#[test]
fn a_tpp_is_new_once() {
    let seen = SeenCertificates::default();
    seen.add(self::seen(1, 1, TODAY));
    seen.add(self::seen(1, 2, TODAY));
    seen.add(self::seen(2, 1, TODAY));
    // A request came before the file was read.
    seen.restore(vec![self::seen(2, 7, TODAY - 1)]);
    let new: Vec<_> = seen.take_new().iter().map(ToString::to_string).collect();
    assert_eq!(new, ["PSDNO-FSA-1"]);
    seen.add(self::seen(1, 3, TODAY));
    assert!(seen.take_new().is_empty());
}

#[test]
fn processes_on_one_file_add_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    for tpp in [1, 2] {
        let mut record = SeenRecord::default();
        record.add(seen(tpp, 1, TODAY));
        assert!(KeptFile::new(path.clone()).write(record, TODAY));
    }
    let found = file::read(&path).unwrap().certificates;
    assert_eq!(found, [seen(1, 1, TODAY), seen(2, 1, TODAY)]);
    let lines = fs::read_to_string(&path).unwrap();
    let first = r#"{"tpp":"PSDNO-FSA-1","lastSeen":"2026-01-01","certificate":"AAAAAAAAAAEB"}"#;
    assert_eq!(lines.lines().next(), Some(first));
}

/// Somebody else may have written it.
#[test]
fn a_file_that_others_may_write_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    let of = |tpp: usize| {
        let mut record = SeenRecord::default();
        record.add(seen(tpp, 1, TODAY));
        record
    };
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    for (wide, is_believed) in [
        (0o666, false),
        (0o620, false),
        (0o602, false),
        (0o644, true),
    ] {
        assert!(KeptFile::new(path.clone()).write(of(1), TODAY));
        fs::set_permissions(&path, fs::Permissions::from_mode(wide)).unwrap();
        let certificates = SeenCertificates::default();
        let mut kept = KeptFile::new(path.clone());
        kept.restore(&certificates);
        let restored = certificates.tpps(NOW).len();
        assert_eq!(restored, usize::from(is_believed), "{wide:o}");
        // The next write replaces it, and adds what it has only where it is believed.
        assert!(kept.write(of(2), TODAY));
        assert_eq!(mode(), 0o600, "{wide:o}");
        let tpps = file::read(&path).unwrap().certificates.len();
        assert_eq!(tpps, 1 + usize::from(is_believed), "{wide:o}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_damaged_file_is_no_reason_not_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    let mut record = SeenRecord::default();
    record.add(seen(1, 1, TODAY));
    let mut kept = KeptFile::new(path.clone());
    assert!(kept.write(record.clone(), TODAY));
    let good = fs::read_to_string(&path).unwrap();
    let later = good.replace("2026-01-01", "then");
    fs::write(&path, format!("{}\n{later}{good}\u{0}\n", &good[..40])).unwrap();
    let certificates = SeenCertificates::default();
    kept.restore(&certificates);
    assert_eq!(certificates.tpps(NOW).len(), 1);
    assert_eq!(file::read(&path).unwrap().damaged, 3);
    assert!(kept.write(record.clone(), TODAY));
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
    // What is no file is neither read nor written; the thread tries again.
    let mut none = KeptFile::new(path.join("below/a/file"));
    none.restore(&certificates);
    assert!(!none.write(record.clone(), TODAY));
    let other = folder.path().join("folder");
    fs::create_dir(&other).unwrap();
    let mut other = KeptFile::new(other);
    other.restore(&certificates);
    assert!(!other.write(record, TODAY));
}
