//! Checks of the documents: every link has a target, and ARCHITECTURE.md names existing files, types and functions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// The maximum number of terms in the glossary.
const MAX_TERMS: usize = 40;

/// Items of this crate's source, by their names.
struct Items {
    types: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Items {
    fn read() -> Self {
        let (mut types, mut functions) = (BTreeSet::new(), BTreeSet::new());
        for file in files(&root().join("src"), "rs") {
            for line in fs::read_to_string(file).unwrap().lines() {
                // `pub(in crate::gateway)` is two words.
                let line = line.replacen("pub(in ", "pub(", 1);
                let mut words = line.split_whitespace().skip_while(|word| {
                    matches!(*word, "const" | "async") || word.starts_with("pub")
                });
                let (kind, name) = (words.next(), words.next().unwrap_or_default());
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = name[..end.unwrap_or(name.len())].to_owned();
                match kind {
                    Some("struct" | "enum" | "trait" | "type") => types.insert(name),
                    Some("fn") => functions.insert(name),
                    _ => false,
                };
            }
        }
        Self { types, functions }
    }

    /// Whether a quoted text of ARCHITECTURE.md names an existing item. Other texts (a command, a key) are not names.
    fn have(&self, quoted: &str) -> bool {
        let is_path = [
            "src/",
            "tests/",
            "benches/",
            "examples/",
            "config/",
            "docs/",
        ];
        if is_path.iter().any(|folder| quoted.starts_with(folder)) {
            return root().join(quoted).exists();
        }
        if let Some(function) = quoted.strip_suffix("()") {
            let name = function.rsplit("::").next().unwrap();
            return self.functions.contains(name);
        }
        let name = quoted.rsplit("::").next().unwrap();
        let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(char::is_alphanumeric)
            && name.contains(|c: char| c.is_ascii_lowercase());
        !is_type || self.types.contains(name)
    }
}

#[test]
fn the_architecture_names_what_exists() {
    let items = Items::read();
    let quoted: BTreeSet<_> = quoted(ARCHITECTURE).collect();
    let named = quoted.iter().filter(|name| name.starts_with("src/"));
    assert!(named.count() > 30, "few files are named");
    let gone: Vec<_> = quoted.iter().filter(|name| !items.have(name)).collect();
    assert!(gone.is_empty(), "not in the sources: {gone:#?}");
    // The check itself detects a wrong name.
    for wrong in [
        "src/gateway/gone.rs",
        "NoSuchType",
        "state::NoSuchType",
        "no_such_function()",
    ] {
        assert!(!items.have(wrong), "{wrong}");
    }
}

#[test]
fn the_glossary_is_short_and_in_order() {
    let (_, glossary) = ARCHITECTURE.split_once("\n## Glossary\n").unwrap();
    let rows = glossary.lines().filter(|line| line.starts_with("| "));
    let terms: Vec<_> = rows.skip(1).map(|row| row.to_lowercase()).collect();
    assert!(
        (20..=MAX_TERMS).contains(&terms.len()),
        "{} terms",
        terms.len()
    );
    assert!(
        terms.is_sorted(),
        "the terms are not in the order of letters"
    );
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(files(&root().join("dashboards"), "md"));
    pages.extend(fs::read_dir(root()).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        path.extension()
            .is_some_and(|kind| kind == "md")
            .then_some(path)
    }));
    let mut links = 0;
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            if !target.exists() || !has_heading(&target, anchor) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 60, "{links} links are looked at");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The list of pages, of which the site is made (.ci/docs.py), has every page once, also each that a page links, and no page links a folder,
/// which a site has not.
#[test]
fn the_summary_names_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1);
    let links = links.map(|link| link.split(')').next().unwrap());
    let named: Vec<_> = links
        .map(|link| root().join("docs").join(link).canonicalize().unwrap())
        .collect();
    let mut pages = files(&root().join("docs"), "md");
    pages.retain(|page| !page.ends_with("docs/SUMMARY.md"));
    pages.extend(files(&root().join("dashboards"), "md"));
    for name in [
        "README",
        "ARCHITECTURE",
        "CHANGELOG",
        "CONTRIBUTING",
        "SECURITY",
    ] {
        pages.push(root().join(format!("{name}.md")));
    }
    let mut pages: BTreeSet<_> = pages
        .iter()
        .map(|page| page.canonicalize().unwrap())
        .collect();
    for page in pages.clone() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let file = link.split([')', '#']).next().unwrap();
            let target = page.parent().unwrap().join(file);
            assert!(
                file.is_empty() || !target.is_dir(),
                "{}: {file}",
                page.display()
            );
            // A page elsewhere is one of the site by its link, as that of the fuzz targets.
            if target.extension().is_some_and(|kind| kind == "md") && !file.contains("://") {
                pages.insert(target.canonicalize().unwrap());
            }
        }
    }
    pages.remove(&root().join("docs/SUMMARY.md").canonicalize().unwrap());
    assert_eq!(
        named.len(),
        pages.len(),
        "a page stands twice, or is missing"
    );
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), pages);
}

/// docs/sizing.md: the costs of strangers are those that .ci/instructions.sh counts, in thousands.
#[test]
fn the_costs_of_strangers_are_the_counted_ones() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let counted: BTreeMap<_, u64> = read("benches/instructions.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect();
    let page = read("docs/sizing.md");
    let stated: BTreeMap<_, _> = page
        .lines()
        .filter_map(|line| line.split('|').nth_back(3).zip(line.split('|').nth_back(2)))
        .filter_map(|(name, count)| {
            let name = name.trim().strip_prefix('`')?.strip_suffix('`')?;
            Some((name.to_owned(), count.trim().parse().ok()?))
        })
        .collect();
    let of_strangers = counted.iter().filter(|(name, _)| {
        // What a TPP asks for, and a part of it.
        !matches!(
            name.as_str(),
            "GET" | "POST" | "claim" | "claim-store" | "verification"
        )
    });
    let expected: BTreeMap<_, _> = of_strangers
        .map(|(name, count)| (name.clone(), (count + 500) / 1_000))
        .collect();
    assert_eq!(stated, expected);
}

/// Whether a page has the heading of an anchor, by the rules of repository hosts.
fn has_heading(page: &Path, anchor: &str) -> bool {
    if anchor.is_empty() {
        return true;
    }
    let text = fs::read_to_string(page).unwrap();
    // A comment of a command is no heading.
    let prose = text.split("```").step_by(2);
    let mut headings = prose
        .flat_map(str::lines)
        .filter(|line| line.starts_with('#'));
    headings.any(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-") == anchor
    })
}

/// The texts in single backticks, outside code blocks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.lines().filter(|line| !line.starts_with("    "));
    prose.flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Every file of this kind in a folder and below it.
fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, kind));
        } else if path.extension().is_some_and(|own| own == kind) {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
