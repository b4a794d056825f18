//! What a TPP sent with its certificate is kept beside it, within bounds.

use super::{NOW, Signing, TODAY, file, seen, small};
use crate::{
    clock::Timestamp,
    seen::{
        SeenCertificates,
        record::{SeenCertificate, SeenRecord},
    },
    trust::decode::PresentedCertificates,
};
use std::{fs, sync::Arc};

/// A certificate of TPP 1, and what came with it.
fn with(pool: &[&[u8]], day: u64) -> SeenCertificate {
    let seen = seen(1, 1, day);
    SeenCertificate {
        certificates: Arc::new(PresentedCertificates {
            leaf: seen.certificates.leaf.clone(),
            pool: pool.iter().map(|one| one.to_vec()).collect(),
        }),
        ..seen
    }
}

fn pool(record: &SeenRecord) -> Vec<Vec<u8>> {
    record.all().next().unwrap().certificates.pool.clone()
}

/// A chain by which the certificate is trusted below one bundle is not lost by a request that needs none, or needs another.
#[test]
fn chains_are_added_to_each_other() {
    let mut record = SeenRecord::default();
    assert!(record.add(with(&[], TODAY)));
    assert!(record.add(with(&[b"a"], TODAY)), "a chain is a change");
    assert!(!record.add(with(&[b"a"], TODAY)));
    assert!(record.add(with(&[], TODAY + 1)), "a later day");
    assert_eq!(pool(&record), [b"a"]);
    assert!(record.add(with(&[b"b", b"a"], TODAY + 1)));
    // What another process has written on an earlier day.
    assert!(record.add(with(&[b"c"], TODAY)));
    assert_eq!(pool(&record), [b"b", b"a", b"c"]);
    assert_eq!(record.all().next().unwrap().day, TODAY + 1);
}

#[test]
fn what_is_kept_beside_a_certificate_is_bounded() {
    let mut record = SeenRecord::default();
    for number in 0..20_u8 {
        record.add(with(&[&[number]], TODAY));
    }
    let kept: Vec<_> = pool(&record).concat();
    assert_eq!(kept, [19, 18, 17, 16, 15, 14, 13], "the latest");
    let mut record = SeenRecord::default();
    let long = |number: u8| vec![number; 5 * 1024];
    for number in 0..3 {
        record.add(with(&[&long(number)], TODAY));
    }
    assert_eq!(pool(&record), [long(2), long(1)]);
    // It counts within the bound of all.
    let mut record = small(100, 100, 30);
    record.add(seen(2, 1, TODAY - 1));
    record.add(with(&[], TODAY));
    assert_eq!(record.all().count(), 2);
    record.add(with(&[&[7; 20]], TODAY));
    assert_eq!(record.all().count(), 1, "the oldest goes");
}

#[test]
fn a_later_request_adds_its_chain() {
    let (mut signing, seen) = (Signing::new(), SeenCertificates::default());
    let whole = signing.presented.clone();
    let alone = whole[..whole.rfind("-----BEGIN").unwrap()].to_owned();
    let mut kept = Vec::new();
    for (day, presented) in (0_u64..).zip([&alone, &whole, &alone]) {
        signing.presented.clone_from(presented);
        signing.note(&seen, Timestamp::from_unix(NOW.unix() + day * 86_400));
        let record = seen.wait_for_change().0.unwrap();
        kept.push(pool(&record).len());
    }
    assert_eq!(kept, [0, 1, 1]);
}

/// One certificate that cannot be read does not hide the TPP that it came with.
#[test]
fn a_damaged_chain_is_left_out_of_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    let mut record = SeenRecord::default();
    record.add(with(&[b"abc", b"def"], TODAY));
    file::write(&path, &record).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    // "YWJj" is base64 of the first.
    fs::write(&path, text.replace("YWJj", "YWJ")).unwrap();
    let found = file::read(&path).unwrap();
    assert_eq!(found.damaged, 1);
    assert_eq!(found.certificates, [with(&[b"def"], TODAY)]);
}
