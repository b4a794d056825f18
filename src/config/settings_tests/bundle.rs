//! A bundle of trust anchors: what is loaded, and who may have written it (CRT-8).

use super::*;
use crate::{
    clock::Timestamp,
    config::Warning,
    expiring::{Expiring, Level},
    hex,
};
use openssl::x509::X509;
use sha2::{Digest, Sha256};
use std::os::unix::fs::symlink;

const MADE: &str = "2026-07-16T08:00:00Z";
const NEXT: &str = "2026-11-30T12:00:00Z";
const DAY: u64 = 86_400;

/// A configuration with a bundle and nothing else.
fn only() -> String {
    LEAST.replace("{anchors: ../certs/anchors}", "{bundle: ../lists/current}")
}

fn list(territory: &str, next: &str) -> String {
    format!(
        "{{territory: '{territory}', operator: o, version: 6, sequence: 1, issued: '{MADE}', next_update: {next}, sha256: a, signer: s, signer_sha256: a}}"
    )
}

impl Site {
    /// A site with a bundle of two seals and one web site, to which `lists/current` leads.
    fn with_bundle() -> Self {
        let site = Self::new();
        std::fs::create_dir(site.path().join("lists")).unwrap();
        site.set_mode("lists", 0o755);
        site.write_bundle("one", &["a", "b"], &["c"]);
        symlink("one", site.path().join("lists/current")).unwrap();
        site
    }

    fn write_bundle(&self, name: &str, seals: &[&str], websites: &[&str]) {
        let mut text = format!(
            "format: 1\nmade: '{MADE}'\nas_of: '{MADE}'\nlist_of_lists: {}\nlists: [{}]\nanchors:\n",
            list("EU", "'2027-01-31T00:00:00Z'"),
            list("NO", &format!("'{NEXT}'")),
        );
        for folder in ["", "/seals", "/websites"] {
            let folder = format!("lists/{name}{folder}");
            std::fs::create_dir(self.path().join(&folder)).unwrap();
            self.set_mode(&folder, 0o755);
        }
        for (folder, names) in [("seals", seals), ("websites", websites)] {
            for own in names {
                let pem = match own.starts_with("leaf") {
                    true => certificate(own).0,
                    false => authority(own),
                };
                let der = X509::from_pem(&pem).unwrap().to_der().unwrap();
                let digest = hex::encode(&Sha256::digest(der));
                text.push_str(&format!(
                    "- {{sha256: '{digest}', subject: CN={own}, not_after: '{NEXT}', file: {own}.pem, for: [{folder}], services: []}}\n"
                ));
                let pem = [b"NO: a provider: a service\n".as_slice(), &pem].concat();
                self.write(&format!("lists/{name}/{folder}/{own}.pem"), pem);
            }
        }
        self.write(&format!("lists/{name}/bundle.yaml"), text);
    }

    /// The faults of the bundle, without their place and the folder of the site.
    fn faults(&self) -> Vec<String> {
        let here = std::fs::canonicalize(self.path()).unwrap();
        let here = format!("{}/", here.display());
        let faults = self.read(&only()).unwrap_err().into_iter();
        let faults = faults.map(|fault| {
            let (place, text) = fault.split_once(": trust.bundle: ").unwrap();
            assert_eq!(place, "gateway.yaml:4:17");
            text.replace(&here, "").replace("../", "")
        });
        faults.collect()
    }
}

/// How many anchors there are of seals, and of clients.
fn anchors(settings: &Settings) -> [Option<usize>; 2] {
    let text = format!("{:?}", settings.reloadable.snapshot.trust);
    let mut counts = text.split("Anchors { anchors: ").skip(1);
    [(); 2].map(|()| {
        let digits = counts.next()?.split(',').next()?;
        Some(digits.parse().unwrap())
    })
}

//= CRT-8 accepted
#[test]
fn a_bundle_beside_folders_and_alone() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    // Seals and web sites may sign, by default; web sites alone are shown in TLS.
    assert_eq!(anchors(&settings), [Some(3), Some(1)]);
    for (types, expected) in [("eseal", 2), ("web", 1)] {
        let text = only().replace(
            "/current",
            &format!("/current, certificate_types: [{types}]"),
        );
        let settings = site.read(&text).unwrap();
        assert_eq!(anchors(&settings), [Some(expected), Some(1)], "{types}");
    }
    let files = &settings.reloadable.trust;
    assert_eq!((&files.anchors, &files.clients), (&None, &None));
    assert!(files.shown_anchors().ends_with("lists/current"));
    let bundle = files.bundle.clone().unwrap();
    assert_eq!(bundle.imported.to_string(), MADE);
    let next = bundle.next_update.unwrap();
    assert_eq!(
        (next.at.to_string().as_str(), next.territory.as_str()),
        (NEXT, "NO")
    );
    // Each folder that holds anchors is looked at, by the link.
    let named = &settings.reloadable.files.named;
    for path in [
        "lists/current",
        "lists/current/seals",
        "lists/current/websites",
    ] {
        assert!(named.iter().any(|file| file.ends_with(path)), "{path}");
    }
    let beside = |more: &str| LEAST.replace("../certs/anchors", more);
    let both = beside("../certs/anchors, bundle: ../lists/current");
    let settings = site.read(&both).unwrap();
    assert_eq!(
        anchors(&settings),
        [Some(4), Some(2)],
        "the folder serves both"
    );
    let own = both.replace(
        "server.key",
        "server.key, client_anchors: ../certs/intermediates",
    );
    let settings = site.read(&own).unwrap();
    assert_eq!(anchors(&settings), [Some(4), Some(2)]);
    // An anchor of both counts once.
    let same = beside("../lists/one/seals, bundle: ../lists/one");
    assert_eq!(anchors(&site.read(&same).unwrap()), [Some(3), Some(3)]);
    // Without a bundle, clients have the anchors of seals.
    assert_eq!(anchors(&site.read(LEAST).unwrap()), [Some(1), None]);
    let neither = LEAST.replace("anchors: ../certs/anchors", "");
    let faults = site.read(&neither).unwrap_err();
    assert_eq!(faults, ["gateway.yaml:4:1: trust.anchors: missing key"]);
}

/// Whoever can write in it decides whom the gateway trusts.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn only_its_owner_writes_a_bundle() {
    for (path, good) in [
        ("lists", 0o755),
        ("lists/one", 0o755),
        ("lists/one/seals", 0o700),
        ("lists/one/websites", 0o755),
        ("lists/one/bundle.yaml", 0o644),
        ("lists/one/seals/a.pem", 0o644),
        ("lists/one/websites/c.pem", 0o600),
    ] {
        let site = Site::with_bundle();
        for more in [0o020, 0o002, 0o022] {
            let mode = good | more;
            site.set_mode(path, mode);
            let expected = format!(
                "{path}: its mode {mode:04o} lets others than its owner change whom the gateway trusts; chmod go-w {path}"
            );
            assert_eq!(site.faults(), [expected]);
        }
        site.set_mode(path, good);
        assert!(site.read(&only()).is_ok(), "{path}");
    }
    let site = Site::with_bundle();
    site.set_mode("lists", 0o1777);
    assert!(site.read(&only()).is_ok(), "others replace nothing there");
}

/// Who writes in any folder on the way leads it elsewhere: in one that a link leads through, and in one further up.
//= CRT-8 refused
#[test]
fn nobody_else_writes_on_the_way_to_a_bundle() {
    let site = Site::with_bundle();
    let [shared, current] = ["shared", "lists/current"].map(|name| site.path().join(name));
    std::fs::create_dir(&shared).unwrap();
    std::fs::remove_file(&current).unwrap();
    symlink("../shared/middle", &current).unwrap();
    symlink("../lists/./one", shared.join("middle")).unwrap();
    site.set_mode("shared", 0o755);
    assert!(site.read(&only()).is_ok());
    site.set_mode("shared", 0o777);
    assert!(site.faults()[0].starts_with("shared: its mode 0777 lets others"));
    site.set_mode("shared", 0o755);
    let above = only().replace("../lists/current", "../shared/above/lists/current");
    let lists = shared.join("above");
    std::fs::create_dir(&lists).unwrap();
    std::fs::rename(site.path().join("lists"), lists.join("lists")).unwrap();
    std::fs::remove_file(lists.join("lists/current")).unwrap();
    symlink("one", lists.join("lists/current")).unwrap();
    assert!(site.read(&above).is_ok());
    site.set_mode("shared/above", 0o775);
    assert!(site.read(&above).is_err());
}

/// Root may give files away; the users are made up.
//= CRT-8 refused
#[test]
fn one_user_imports_a_bundle() {
    use std::os::unix::fs::lchown;
    if !rustix::process::geteuid().is_root() {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(
            !is_ci,
            "only root gives files away; CI=true, so that no test is skipped"
        );
        println!("skipped: only root gives files away");
        return;
    }
    let site = Site::with_bundle();
    let own = |name: &str, user: u32| lchown(site.path().join(name), Some(user), None).unwrap();
    for name in ["lists/current", "lists/one/seals", "lists/one/seals/a.pem"] {
        own(name, 12_345);
        assert!(site.read(&only()).is_ok(), "{name}");
        own("lists/one", 12_346);
        let fault = &site.faults()[0];
        assert!(
            fault.contains("belong to several users (uids {12345, 12346})"),
            "{fault}"
        );
        own(name, 0);
        own("lists/one", 0);
    }
    // Root checks for the gateway's user, who owns the folder of the state, as that user does at the start.
    own("lists/one", 12_345);
    own("lists/one/seals", 12_346);
    assert!(site.read(&only()).is_err());
    own("state", 12_346);
    assert!(site.read(&only()).is_ok());
    own("state", 0);
    own("lists/one", 0);
    own("lists/one/seals", 0);
    site.set_mode("lists", 0o1777);
    own("lists/current", 12_345);
    let fault = &site.faults()[0];
    assert!(
        fault.contains("that of the bundle belongs to another user (uid 12345)"),
        "{fault}"
    );
}

//= CRT-8 refused
#[test]
fn only_what_was_imported_is_loaded() {
    let again = "import again, or lead the link to an older bundle";
    let (other, _) = certificate("other");
    let site = Site::with_bundle();
    site.write("lists/one/seals/mine.pem", &other);
    assert_eq!(
        site.faults(),
        [
            "lists/one/seals/mine.pem is not listed in bundle.yaml: only what was imported is loaded; remove it, or name anchors of your own by trust.anchors"
        ]
    );
    // One that is listed for another use.
    let site = Site::with_bundle();
    let from = site.path().join("lists/one/seals/a.pem");
    site.write("lists/one/websites/a.pem", std::fs::read(from).unwrap());
    assert!(site.faults()[0].contains("websites/a.pem is not listed"));
    let site = Site::with_bundle();
    site.write("lists/one/seals/b.pem", &other);
    assert_eq!(
        site.faults(),
        [format!(
            "lists/one/seals/b.pem is not the certificate that bundle.yaml lists by its SHA-256: {again}"
        )]
    );
    let own = std::fs::read(site.path().join("lists/one/seals/a.pem")).unwrap();
    for content in ["", "x"] {
        site.write("lists/one/seals/b.pem", content);
        assert_eq!(
            site.faults(),
            ["lists/one/seals/b.pem is not one certificate in PEM; import again"]
        );
    }
    let site = Site::with_bundle();
    std::fs::remove_file(site.path().join("lists/one/websites/c.pem")).unwrap();
    assert_eq!(
        site.faults(),
        [format!(
            "lists/one/websites has no file \"c.pem\", which bundle.yaml lists: {again}"
        )]
    );
    // A link's target may be anybody's.
    let site = Site::with_bundle();
    std::fs::remove_file(site.path().join("lists/one/seals/a.pem")).unwrap();
    site.write("a.pem", own);
    symlink("../../../a.pem", site.path().join("lists/one/seals/a.pem")).unwrap();
    assert!(site.faults()[0].starts_with("lists/one/seals/a.pem is a link"));
    // Another bundle under the same document: each file is a fault, and not all are told.
    let site = Site::with_bundle();
    let names: Vec<_> = (0..20).map(|number| format!("n{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    site.write_bundle("two", &names, &[]);
    std::fs::copy(
        site.path().join("lists/one/bundle.yaml"),
        site.path().join("lists/two/bundle.yaml"),
    )
    .unwrap();
    std::fs::remove_file(site.path().join("lists/current")).unwrap();
    symlink("two", site.path().join("lists/current")).unwrap();
    let faults = site.faults();
    assert_eq!(faults.len(), 11);
    assert!(
        faults.contains(&"lists/two: 13 more faults".to_owned()),
        "{faults:?}"
    );
}

/// Beside its certificate a file holds no other, no key, and nothing that OpenSSL passes over. A fault repeats nothing of a key.
//= CRT-8 refused
#[test]
fn a_file_of_a_bundle_holds_one_certificate() {
    let site = Site::with_bundle();
    let file = "lists/one/seals/b.pem";
    let read = |name: &str| std::fs::read_to_string(site.path().join(name)).unwrap();
    let (good, other) = (read(file), read("lists/one/seals/a.pem"));
    let key = String::from_utf8(certificate("key").1).unwrap();
    let secret = key.lines().nth(1).unwrap().to_owned();
    let strange = "-----BEGIN Abc+/-----\nAAAA\n-----END Abc+/-----\n";
    let crl = strange.replace("Abc+/", "X509 CRL");
    let expected_one = "expected one CERTIFICATE: import again";
    for (content, expected) in [
        (
            format!("{good}{other}"),
            "holds 2 certificates; expected one: import again".to_owned(),
        ),
        (
            format!("{key}{good}"),
            "holds a private key beside a certificate, which everybody can read: find out whose it is, replace that key, and import again".to_owned(),
        ),
        (
            format!("{good}{crl}"),
            format!("holds PEM of another kind, X509 CRL; {expected_one}"),
        ),
        (
            good.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
            format!("holds PEM of another kind, TRUSTED CERTIFICATE; {expected_one}"),
        ),
        (
            format!("{good}{strange}"),
            format!("holds PEM of an unknown kind; {expected_one}"),
        ),
    ] {
        site.write(file, content);
        let faults = site.faults();
        assert_eq!(faults, [format!("{file} {expected}")]);
        assert!(!faults.concat().contains(&secret));
    }
    site.write(file, good);
    assert!(site.read(&only()).is_ok());
}

//= CRT-8 refused
#[test]
fn what_is_no_bundle() {
    let site = Site::with_bundle();
    site.write("lists/one/bundle.yaml", "format: 7\n");
    assert_eq!(
        site.faults(),
        [
            "lists/one/bundle.yaml: it has the format 7, and this gateway reads 1; import with the portvakt-lists of this version; only portvakt-lists import writes it: import again, or lead the link to an older bundle"
        ]
    );
    let document = site.path().join("lists/one/bundle.yaml");
    std::fs::remove_file(&document).unwrap();
    assert_eq!(
        site.faults(),
        [
            "lists/current has no bundle.yaml, and so is no bundle; name current in the folder that portvakt-lists import writes to, or import again"
        ]
    );
    let whole = only().replace("lists/current", "lists");
    let faults = site.read(&whole).unwrap_err();
    assert!(
        faults.len() == 1
            && faults[0].ends_with("lists/current, which leads to the one in use")
            && faults[0].contains("lists is the folder of all bundles; name "),
        "{faults:?}"
    );
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &document,
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    assert_eq!(
        site.faults(),
        [
            "lists/one/bundle.yaml is no regular file (a folder, a FIFO, a device or a socket); remove it, and import again"
        ]
    );
    std::fs::remove_file(&document).unwrap();
    site.write("lists/one/bundle.yaml", vec![b'#'; 16 * 1024 * 1024 + 1]);
    assert_eq!(
        site.faults(),
        ["lists/one/bundle.yaml is longer than 16777216 bytes"]
    );
    std::fs::remove_dir_all(site.path().join("lists/one/websites")).unwrap();
    assert!(site.faults()[0].starts_with("lists/one/websites is not a readable folder: "));
    std::fs::remove_dir_all(site.path().join("lists/one")).unwrap();
    let fault = &site.faults()[0];
    assert!(
        fault.contains("lists/current is not a readable folder: No such file"),
        "{fault}"
    );
    assert!(
        fault.ends_with("expected the folder that portvakt-lists import writes"),
        "{fault}"
    );
}

//= CRT-8 refused
#[test]
fn a_bundle_that_serves_for_nothing() {
    let site = Site::with_bundle();
    site.write_bundle("none", &[], &[]);
    let none = only().replace("current", "none");
    let faults = site.read(&none).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of the certificates that may sign"),
        "{faults:?}"
    );
    site.write_bundle("no-sites", &["a"], &[]);
    let seals = only().replace("current", "no-sites");
    assert!(site.read(&seals).is_ok());
    let asked = seals.replace("server.key", "server.key, client_auth: optional");
    let faults = site.read(&asked).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of web sites"),
        "{faults:?}"
    );
    let own = asked.replace(
        "client_auth",
        "client_anchors: ../certs/anchors, client_auth",
    );
    assert!(site.read(&own).is_ok());
}

/// A late list is told, and never ends the service.
//= CRT-8 accepted
#[test]
fn the_next_update_of_a_bundle() {
    let site = Site::with_bundle();
    let found = |text: &str, at: u64| {
        let settings = site.read(text).unwrap();
        let warnings = settings.reloadable.warnings.iter();
        let at = Timestamp::from_unix(at);
        let found = warnings.filter_map(|warning| warning.finding(at));
        found
            .filter(|one| one.of == Expiring::Bundle)
            .collect::<Vec<_>>()
    };
    let text = only();
    let (made, next) = (1_784_188_800, 1_796_040_000);
    assert_eq!(found(&text, next - 7 * DAY), []);
    let [soon] = &found(&text, next - 7 * DAY + 1)[..] else {
        panic!("one finding");
    };
    assert_eq!(soon.level, Level::Soon);
    let expected =
        format!("trust.bundle: the list of NO is to be replaced by {NEXT}, within 7 days");
    assert!(soon.text.contains(&expected), "{}", soon.text);
    let [past] = &found(&text, next + 1_000 * DAY)[..] else {
        panic!("one finding");
    };
    assert_eq!(past.level, Level::Soon, "never over");
    let expected = format!("the list of NO was to be replaced by {NEXT}: its anchors still serve");
    assert!(past.text.contains(&expected), "{}", past.text);
    assert_eq!(found(&text, made), []);
    let [ahead] = &found(&text, made - 2 * DAY)[..] else {
        panic!("one finding");
    };
    assert!(ahead.text.contains("which lies ahead"), "{}", ahead.text);
    // Lists that are closed have no next update, and the bundle of them can lie ahead too.
    let path = site.path().join("lists/one/bundle.yaml");
    let closed = std::fs::read_to_string(path).unwrap();
    let closed = closed.replace("'2027-01-31T00:00:00Z'", "null");
    let closed = closed.replace(&format!("next_update: '{NEXT}'"), "next_update: null");
    site.write("lists/one/bundle.yaml", closed);
    assert_eq!(found(&text, next + 1_000 * DAY), []);
    let [ahead] = &found(&text, made - 2 * DAY)[..] else {
        panic!("one finding");
    };
    assert!(ahead.text.contains("which lies ahead"), "{}", ahead.text);
    let settings = site.read(&text).unwrap();
    let mut ends = settings.reloadable.warnings.iter().filter_map(Warning::end);
    assert!(ends.all(|(of, _)| of != Expiring::Bundle));
}

/// A bundle that nobody has replaced for three days, as the alert says.
//= CRT-8 accepted
#[test]
fn an_old_bundle() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    let old = |at: u64| {
        let warnings = settings.reloadable.warnings.iter();
        let said = warnings.filter_map(|one| one.at(Timestamp::from_unix(at)));
        let said: Vec<_> = said.map(|one| one.to_string()).collect();
        said.iter().any(|text| {
            text.contains(&format!(
                "trust.bundle: the bundle was imported at {MADE}, more than 3 days ago: "
            ))
        })
    };
    let made = 1_784_188_800;
    assert!(!old(made + 3 * DAY));
    assert!(old(made + 3 * DAY + 1));
    let alerts = include_str!("../../../dashboards/alerts.yml");
    let expression = format!(
        "min by (job) (portvakt_bundle_imported_timestamp_seconds) > {}\n",
        3 * DAY
    );
    assert!(alerts.contains(&expression));
}

/// A list may name a certificate that is no CA's: it is no anchor, and `check` counts it.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn only_cas_are_anchors_of_a_bundle() {
    let site = Site::with_bundle();
    site.write_bundle("mixed", &["a", "leaf", "leaf-2"], &["c"]);
    let text = only().replace("current", "mixed");
    let settings = site.read(&text).unwrap();
    assert_eq!(anchors(&settings), [Some(2), Some(1)]);
    let warnings = settings.reloadable.warnings.iter();
    let warnings = warnings.filter_map(|one| one.at(Timestamp::from_unix(1_784_188_800)));
    let warnings: Vec<_> = warnings.map(|one| one.to_string()).collect();
    assert!(
        warnings.len() == 1
            && warnings[0].contains("2 of 3 certificates in ")
            && warnings[0].contains("lists/mixed/seals are no CA's, and are left out"),
        "{warnings:?}"
    );
    // Web sites may sign too, unless the configuration says otherwise.
    site.write_bundle("leaves", &["leaf"], &["c"]);
    let leaves = only().replace("current", "leaves");
    assert!(site.read(&leaves).is_ok());
    let seals = leaves.replace("/leaves", "/leaves, certificate_types: [eseal]");
    let faults = site.read(&seals).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of the certificates that may sign"),
        "{faults:?}"
    );
}

/// The end of one anchor of a bundle is nothing to act on; the end of all is.
//= CRT-8 accepted
#[test]
fn ended_anchors_of_a_bundle() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    let of = |at: u64| {
        let warnings = settings.reloadable.warnings.iter();
        let found = warnings.filter_map(|warning| warning.finding(Timestamp::from_unix(at)));
        found.map(|one| (one.of, one.level)).collect::<Vec<_>>()
    };
    // The certificates of this test end in 2096.
    assert_eq!(of(1_790_000_000), []);
    let over = of(4_100_000_000);
    for of in [Expiring::Anchor, Expiring::ClientAnchor] {
        assert!(over.contains(&(of, Level::Over)), "{over:?}");
    }
    assert!(settings.reloadable.warnings.iter().all(|one| {
        one.end()
            .is_none_or(|(of, _)| !matches!(of, Expiring::Anchor | Expiring::ClientAnchor))
    }));
}

/// A bundle of another time is weaker.
#[test]
fn a_bundle_as_of_another_time() {
    let site = Site::with_bundle();
    let path = site.path().join("lists/one/bundle.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let then = text.replace(&format!("as_of: '{MADE}'"), "as_of: '2025-01-31T00:00:00Z'");
    site.write("lists/one/bundle.yaml", then);
    site.write("config/tpps.yaml", "allow: []\n");
    let production = only().replace("sandbox", "production")
        + "control: {socket: control.sock}\nrevocation: {check: on}\nregisters: {check: on, local: tpps.yaml}\n";
    let settings = site.read(&production).unwrap();
    let warnings = settings.reloadable.warnings.iter();
    let warnings = warnings.filter_map(|one| one.at(Timestamp::from_unix(1_784_188_800)));
    let warnings: Vec<_> = warnings.map(|one| one.to_string()).collect();
    let expected = "the bundle was imported as of 2025-01-31T00:00:00Z (--at): services that were withdrawn since are trusted";
    assert!(
        warnings.iter().any(|one| one.ends_with(expected)),
        "{warnings:?}"
    );
}
