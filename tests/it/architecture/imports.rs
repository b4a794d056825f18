//! The imports between the files of a crate: modules, `use` trees, and paths in the code.
//!
//! A re-exported name leads to the file that defines it. Not here: names that a macro makes, and methods, which need no import.

use super::lexer::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate, by their path below its root folder, such as `gateway/mod.rs`.
pub(super) type Files = BTreeMap<String, String>;

/// A module and its file.
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The names that its `use` items import, and the path of each.
    names: BTreeMap<String, Vec<String>>,
    /// Every path in its code.
    paths: Vec<Vec<String>>,
}

/// The pairs (importing file, imported file), without tests.
pub(super) fn imports(files: &Files) -> BTreeSet<(String, String)> {
    let mut modules = Vec::new();
    let root = ["lib.rs", "main.rs"]
        .into_iter()
        .find(|root| files.contains_key(*root));
    read(files, root.expect("a crate has a root"), None, &mut modules);
    let mut found = BTreeSet::new();
    for (index, module) in modules.iter().enumerate() {
        for path in &module.paths {
            if let Some(target) = resolve(&modules, index, path, 0)
                && target != index
            {
                found.insert((module.file.clone(), modules[target].file.clone()));
            }
        }
    }
    found
}

/// The files that name an extern crate, or one of its family (`name_…`), without tests.
pub(super) fn files_that_name(files: &Files, name: &str) -> Vec<String> {
    let names = |text: &String| {
        let tokens = tokens(text);
        let used = uses(&tokens).into_iter().map(|(_, path)| path);
        used.chain(paths(&tokens))
            .any(|path| path[0].split('_').next() == Some(name))
    };
    let found = files.iter().filter(|(_, text)| names(text));
    found.map(|(file, _)| file.clone()).collect()
}

/// Reads a file and the modules that it declares.
fn read(files: &Files, file: &str, parent: Option<usize>, modules: &mut Vec<Module>) -> usize {
    let tokens = tokens(&files[file]);
    let index = modules.len();
    let uses = uses(&tokens);
    modules.push(Module {
        file: file.to_owned(),
        parent,
        children: BTreeMap::new(),
        names: uses.iter().cloned().collect(),
        paths: Vec::new(),
    });
    let folder = match file
        .strip_suffix("mod.rs")
        .or(file.strip_suffix("lib.rs"))
        .or(file.strip_suffix("main.rs"))
    {
        Some(folder) => folder.to_owned(),
        None => format!("{}/", file.trim_end_matches(".rs")),
    };
    for pair in tokens.windows(3) {
        let [keyword, Token::Word(name), Token::Sign(';')] = pair else {
            continue;
        };
        let places = [
            format!("{folder}{name}.rs"),
            format!("{folder}{name}/mod.rs"),
        ];
        let place = places.iter().find(|place| files.contains_key(*place));
        if let Some(place) = place.filter(|_| keyword.is("mod")) {
            let child = read(files, place, Some(index), modules);
            modules[index].children.insert(name.clone(), child);
        }
    }
    let children = &modules[index].children;
    // A single word is not a path: `pub(super)`.
    let leads = |path: &Vec<String>| {
        let known = ["crate", "super", "self"].contains(&path[0].as_str());
        path.len() > 1 && (known || children.contains_key(&path[0]))
    };
    let written = paths(&without_visibilities(&without_uses(&tokens)));
    let written = written.into_iter().filter(leads);
    let paths = uses.into_iter().map(|(_, path)| path).chain(written);
    modules[index].paths = paths.collect();
    index
}

/// The module whose file defines what a path names; none for other crates and names in scope.
fn resolve(modules: &[Module], from: usize, path: &[String], depth: usize) -> Option<usize> {
    let (first, mut rest) = path.split_first()?;
    // A name in a cycle of re-exports has no definition.
    let deeper = (depth < 16).then_some(depth + 1)?;
    let mut at = match first.as_str() {
        "crate" => 0,
        "self" => from,
        "super" => modules[from].parent?,
        name => match modules[from].children.get(name) {
            Some(child) => *child,
            None => {
                let alias = modules[from].names.get(name)?;
                // `use x::y` in a crate without a module x names another crate.
                if alias.first() == Some(first) && alias.len() == 1 {
                    return None;
                }
                let whole: Vec<_> = alias.iter().chain(rest).cloned().collect();
                return resolve(modules, from, &whole, deeper);
            }
        },
    };
    while let Some((name, further)) = rest.split_first() {
        if name == "super" {
            at = modules[at].parent?;
        } else if let Some(child) = modules[at].children.get(name) {
            at = *child;
        } else if let Some(alias) = modules[at].names.get(name) {
            let whole: Vec<_> = alias.iter().chain(further).cloned().collect();
            return resolve(modules, at, &whole, deeper).or(Some(at));
        } else {
            break;
        }
        rest = further;
    }
    Some(at)
}

/// Every imported name of every `use` item, with its path.
fn uses(tokens: &[Token]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // `use<'a>` captures lifetimes.
        if tokens[at].is("use") && tokens.get(at + 1) != Some(&Token::Sign('<')) {
            at = tree(tokens, at + 1, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// One tree of a `use` item; returns its end.
fn tree(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    found: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = before.to_vec();
    let mut name = None;
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) if word == "as" => {
                if let Some(Token::Word(alias)) = tokens.get(at + 1) {
                    name = Some(alias.clone());
                }
                at += 1;
            }
            Some(Token::Word(word)) if word == "self" && !path.is_empty() => {}
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Path) => {}
            Some(Token::Sign('{')) => {
                at += 1;
                while tokens
                    .get(at)
                    .is_some_and(|token| *token != Token::Sign('}'))
                {
                    at = tree(tokens, at, &path, found);
                    at += usize::from(tokens.get(at) == Some(&Token::Sign(',')));
                }
                return at + 1;
            }
            Some(Token::Sign('*')) => name = Some("*".to_owned()),
            _ => break,
        }
        at += 1;
    }
    if let Some(last) = path.last().cloned() {
        found.push((name.unwrap_or(last), path));
    }
    at
}

/// Skips `use` items, whose paths [`uses`] finds: `use crate::state::{Engine}` imports the file of `Engine`, not that of `state`.
fn without_uses(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.is("use") && tokens.get(at + 1) != Some(&Token::Sign('<')) {
            at = tree(tokens, at + 1, &[], &mut Vec::new());
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

/// Skips a visibility: `pub(in crate::state)` imports nothing.
fn without_visibilities(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut is_inside = false;
    for (at, token) in tokens.iter().enumerate() {
        let follows_pub = at > 0 && tokens[at - 1].is("pub");
        is_inside |= follows_pub && *token == Token::Sign('(');
        if !is_inside {
            kept.push(token.clone());
        }
        is_inside &= *token != Token::Sign(')');
    }
    kept
}

/// Every path of two or more words in the code; of a `use` item, only the part before the first brace.
fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut joined = false;
    for token in tokens {
        match token {
            Token::Word(word) if joined || path.is_empty() => {
                path.push(word.clone());
                joined = false;
            }
            Token::Path if !path.is_empty() => joined = true,
            other => {
                found.push(std::mem::take(&mut path));
                joined = false;
                if let Token::Word(word) = other {
                    path.push(word.clone());
                }
            }
        }
        if joined && path.len() == 1 {
            // Kept, although only a brace may follow: `use pingora::{…}`.
            found.push(path.clone());
        }
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
    found
}
