//! `portvakt sca` and `portvakt psu`, as an operator runs them.

use super::bank::Site;
use std::{
    fs,
    process::{Command, Output},
};

/// Runs the program in a site's folder.
fn portvakt(site: &Site, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(args)
        .args(["--config", "gateway.yaml"])
        .current_dir(site.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn keys_are_rotated_in_two_steps() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let rotate = || portvakt(&site, &["sca", "rotate-key"]);
    let none = rotate();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none.stderr).contains("sca-token.keys is not there yet: the first start makes it")
    );
    site.settings("")
        .sca
        .links(
            portvakt::interface::operations::Environment::Sandbox,
            super::bank::NOW,
        )
        .unwrap();
    let read = || fs::read_to_string(site.path().join("sca-token.keys")).unwrap();
    let old = read();
    let first = rotate();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("step 1 of 2"));
    let both = read();
    let new = both.strip_prefix(&old).unwrap();
    assert!(text(&rotate().stdout).contains("step 2 of 2"));
    assert_eq!(read(), format!("{new}{old}"));
    // No key is shown.
    for line in both.lines() {
        assert!(!text(&first.stdout).contains(line.split(' ').nth(1).unwrap()));
    }
}
