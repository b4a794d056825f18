//! Where a bundle lies, and who may write there (CRT-8).

use super::{Site, only};
use std::os::unix::fs::symlink;

/// Whoever can write in it decides whom the gateway trusts.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn only_its_owner_writes_a_bundle() {
    for (path, good, listed) in [
        ("lists", 0o755, ""),
        ("lists/one", 0o755, ""),
        ("lists/one/seals", 0o700, ""),
        ("lists/one/websites", 0o755, ""),
        ("lists/one/bundle.yaml", 0o644, ""),
        ("lists/one/seals/a.pem", 0o644, " (line 9 of bundle.yaml)"),
        (
            "lists/one/websites/c.pem",
            0o600,
            " (line 11 of bundle.yaml)",
        ),
    ] {
        let site = Site::with_bundle();
        for more in [0o020, 0o002, 0o022] {
            let mode = good | more;
            site.set_mode(path, mode);
            let expected = format!(
                "{path}: its mode {mode:04o} lets others than its owner change whom the gateway trusts; chmod go-w {path}{listed}"
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
