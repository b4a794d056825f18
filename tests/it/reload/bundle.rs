//! A bundle of trust anchors (`trust.bundle`) at the real program: `check`, start, reload, and how old it is. CRT-8.

use super::{configure, other, reload, reloads};
use crate::harness::{
    Answer, Call, Gate, Protocol, World, accepted,
    bundle::{Bundle, lead, set_mode},
    eventually, refused, world,
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::json;
use std::{fs, path::PathBuf, process::Command};

const DAY: u64 = 86_400;

/// What breaks a bundle, what mends it, and the fault.
type Case<'a> = (&'a str, &'a dyn Fn(), &'a dyn Fn(), &'a str);

/// A gate without `trust.anchors`, whose bundle has these anchors of seals.
fn gate(watch: &str, bundle: &Bundle) -> (Gate, PathBuf) {
    let gate = Gate::builder()
        .trust("bundle: lists/current")
        .line(&format!("reload: {{watch: {watch}}}"))
        .for_program();
    configure(&gate, &gate.yaml().replace("  anchors: anchors\n", ""));
    let bundles = gate.folder().join("lists");
    bundle.put(&bundles, "one");
    (gate, bundles)
}

fn of_world() -> Bundle {
    Bundle::of(&[world().root.pem()], &[])
}

/// What `portvakt check` says, and its status.
fn check(gate: &Gate, more: &[&str]) -> (String, Option<i32>) {
    let mut check = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    check.args(["check", "--no-bind", "--config"]);
    let output = check.arg(gate.folder().join("gateway.yaml")).args(more);
    let output = output.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

fn untrusted(gate: &Gate) {
    let call = Call::accounts();
    refused(gate, &call, 403, "FORBIDDEN", "certificate-untrusted");
}

fn faults(answer: &Answer) -> String {
    assert_eq!(answer.status, 422, "{:?}", answer.json());
    answer.json()["faults"].to_string()
}

/// The link leads to another bundle: the gateway notices by itself.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn the_link_leads_to_another_bundle() {
    let (gate, bundles) = gate("100ms", &of_world());
    let (text, status) = check(&gate, &["--strict"]);
    assert_eq!(status, Some(0), "{text}");
    let _program = gate.run_silently(&mut gate.program());
    accepted(&gate, &Call::accounts());
    let status = || gate.send(&Call::accounts(), Protocol::Http1).status;
    // The service of the anchor was withdrawn: the next request is refused.
    Bundle::of(&[other().root.pem()], &[]).put(&bundles, "two");
    eventually("the other bundle is in use", || status() == 403);
    untrusted(&gate);
    lead(&bundles, "one");
    eventually("the first bundle is in use again", || status() == 200);
    accepted(&gate, &Call::accounts());
    // An anchor beside those of the bundle.
    lead(&bundles, "two");
    eventually("the other bundle is in use", || status() == 403);
    configure(&gate, gate.yaml());
    eventually("the folder is read too", || status() == 200);
}

/// A bundle that someone else could have written, or did, is not taken into use, and no gateway starts with it.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn a_bad_bundle_changes_nothing() {
    let (gate, bundles) = gate("1h", &of_world());
    let program = gate.run_silently(&mut gate.program());
    accepted(&gate, &Call::accounts());
    let two = Bundle::of(&[other().root.pem()], &[]).put(&bundles, "two");
    let own = world().root.pem();
    let listed = fs::read_dir(two.join("seals")).unwrap().next().unwrap();
    let listed = listed.unwrap().path();
    let good = fs::read(&listed).unwrap();
    let document = two.join("bundle.yaml");
    let text = fs::read_to_string(&document).unwrap();
    let cases: [Case<'_>; 6] = [
        (
            "a group may write in it",
            &|| set_mode(&two, 0o775),
            &|| set_mode(&two, 0o755),
            "lists/two: its mode 0775 lets others than its owner change whom the gateway trusts; chmod go-w",
        ),
        (
            "others may write the document",
            &|| set_mode(&two.join("bundle.yaml"), 0o646),
            &|| set_mode(&two.join("bundle.yaml"), 0o644),
            "bundle.yaml: its mode 0646 lets others",
        ),
        (
            "an anchor that nobody imported",
            &|| fs::write(two.join("seals/mine.pem"), &own).unwrap(),
            &|| fs::remove_file(two.join("seals/mine.pem")).unwrap(),
            "mine.pem is not listed in bundle.yaml",
        ),
        (
            "another certificate in its place",
            &|| fs::write(&listed, &own).unwrap(),
            &|| fs::write(&listed, &good).unwrap(),
            "is not the certificate that bundle.yaml lists by its SHA-256",
        ),
        (
            "an anchor that is missing",
            &|| fs::remove_file(&listed).unwrap(),
            &|| fs::write(&listed, &good).unwrap(),
            "which bundle.yaml lists",
        ),
        (
            "an anchor without a service of its type",
            &|| {
                let other = text.replace("\n    - seals\n", "\n    - websites\n");
                fs::write(&document, other).unwrap();
            },
            &|| fs::write(&document, &text).unwrap(),
            "it is listed for seals, and none of its services is for seals",
        ),
    ];
    for (what, spoil, mend, expected) in cases {
        spoil();
        let told = faults(&gate.tell("/reload", &json!({})));
        assert!(
            told.contains("trust.bundle: ") && told.contains(expected),
            "{what}: {told}"
        );
        let (text, status) = check(&gate, &[]);
        assert_eq!(status, Some(2), "{what}: {text}");
        assert!(text.contains(expected), "{what}: {text}");
        let start = gate.program().output().unwrap();
        let text = String::from_utf8(start.stderr).unwrap();
        assert!(
            !start.status.success() && text.contains(expected),
            "{what}: {text}"
        );
        // The last good bundle judges on.
        accepted(&gate, &Call::accounts());
        mend();
    }
    assert!((reloads(&gate, "refused") - 6.0).abs() < 0.1);
    // The same bundle, mended, is taken.
    assert_eq!(reload(&gate), json!([]));
    untrusted(&gate);
    drop(program);
}

/// A list names the certificates of TPPs themselves, under a CA that it does not name: none vouches for itself.
//= CRT-8 refused
#[test]
fn a_listed_leaf_does_not_admit_itself() {
    let (gate, bundles) = gate("1h", &of_world());
    let _program = gate.run_silently(&mut gate.program());
    accepted(&gate, &Call::accounts());
    let World {
        both, aisp, pisp, ..
    } = world();
    let mut seals = vec![other().root.pem()];
    seals.extend([both, aisp, pisp].map(|tpp| tpp.issued.pem.clone()));
    Bundle::of(&seals, &[]).put(&bundles, "leaves");
    assert_eq!(reload(&gate), json!([]));
    untrusted(&gate);
    let (text, status) = check(&gate, &[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("3 of 4 certificates in "), "{text}");
}

/// When it was imported, and when its first list is to be replaced: metrics, `check`, and never the end of the service.
//= CRT-8 accepted
#[test]
fn the_age_of_a_bundle() {
    let now = Clock::System.now().unix();
    let at = |seconds| Timestamp::from_unix(seconds);
    let mut bundle = Bundle {
        made: at(now - 2 * DAY),
        next_update: at(now + 30 * DAY),
        ..of_world()
    };
    let (gate, bundles) = gate("1h", &bundle);
    let _program = gate.run_with_logs(&mut gate.program());
    let metric = |name: &str, labels: &[&str]| gate.metric_at_rest(name, labels);
    let is = |made: u64, next: u64, level: f64| {
        for (name, expected) in [("imported", made), ("next_update", next)] {
            let found = metric(&format!("portvakt_bundle_{name}_timestamp_seconds"), &[]);
            assert!((found - expected as f64).abs() < 0.1, "{name}: {found}");
        }
        let found = metric("portvakt_expiring", &["of=\"bundle\""]);
        assert!((found - level).abs() < 0.1, "{found}");
    };
    is(now - 2 * DAY, now + 30 * DAY, 0.0);
    for (name, next, level, expected) in [
        ("soon", now + 6 * DAY, 1.0, "is to be replaced by"),
        ("past", now - DAY, 1.0, "was to be replaced by"),
    ] {
        bundle.next_update = at(next);
        bundle.put(&bundles, name);
        let (text, status) = check(&gate, &["--strict"]);
        assert_eq!(status, Some(1), "{text}");
        let expected = format!("trust.bundle: the list of EU {expected} {}", at(next));
        assert!(text.contains(&expected), "{text}");
        reload(&gate);
        is(now - 2 * DAY, next, level);
        accepted(&gate, &Call::accounts());
        let events = fs::read_to_string(gate.folder().join("gateway.events")).unwrap();
        assert!(events.contains(&expected), "{events}");
    }
    // Three days are the limit of PortvaktBundleOld, which its own metric serves.
    bundle.made = at(now - 4 * DAY);
    bundle.next_update = at(now + 30 * DAY);
    bundle.put(&bundles, "old");
    let (text, status) = check(&gate, &["--strict"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("more than 3 days ago"), "{text}");
    reload(&gate);
    is(now - 4 * DAY, now + 30 * DAY, 0.0);
    accepted(&gate, &Call::accounts());
}
