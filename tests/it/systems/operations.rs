//! docs/operations.md as a new operator follows it: from nothing to a production 200, a backup, and back to it.

use crate::check::page::Page;
use std::fs;

#[test]
#[ignore = "make test-systems"]
fn the_page_leads_to_a_production_200() {
    let page = Page::new();
    let done = page.run("**9. The end of the trial.**");
    let [out, errors] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let etc = page.folder.path().join("etc");
    let events = fs::read_to_string(etc.join("events.log")).unwrap_or_default();
    assert!(done.status.success(), "{out}{errors}{events}");
    // Before the backup, and by the restored state, which knows the PSU.
    assert_eq!(out.matches("{\"accounts\":[]}").count(), 2, "{out}");
    assert_eq!(
        out.lines().filter(|line| line.ends_with("200")).count(),
        2,
        "{out}"
    );
    let lines = fs::read_to_string(etc.join("access.log")).unwrap();
    let forwarded = lines
        .lines()
        .filter(|line| line.contains("\"outcome\":\"forwarded\""));
    assert_eq!(forwarded.count(), 2, "{lines}");
}
