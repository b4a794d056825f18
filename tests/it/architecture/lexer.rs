//! A lexer for Rust source, which skips comments, string literals and items under `#[cfg(test)]`.

/// A token. Whitespace is not a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or a keyword.
    Word(String),
    /// `::`
    Path,
    /// Any other character.
    Sign(char),
}

impl Token {
    /// Whether the token is this word.
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Word(word) if word == text)
    }
}

/// The tokens of a file in a build without tests.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    without_tests(&words(&blanked(source)))
}

/// The lines of a file without `mod tests` and the other items under `#[cfg(test)]`.
pub(super) fn lines_without_tests(source: &str) -> usize {
    let lines: Vec<_> = source.lines().collect();
    let begins = |line: &&str| line.trim_start().starts_with("#[cfg(") && has_test(line);
    let mut count = 0;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if !begins(line) {
            count += 1;
            at += 1;
            continue;
        }
        // The item ends at the first line that closes it at the same indentation.
        let indent = line.len() - line.trim_start().len();
        let rest = &lines[at..];
        let end = rest.iter().position(|line| {
            let depth = line.len() - line.trim_start().len();
            depth == indent && (line.ends_with(';') || line.trim_start().starts_with('}'))
        });
        at += end.map_or(rest.len(), |end| end + 1);
    }
    count
}

fn has_test(attribute: &str) -> bool {
    let mut words = attribute.split(|character: char| !character.is_alphanumeric());
    words.any(|word| word == "test") && !attribute.contains("not(test)")
}

/// The source with spaces in place of comments, strings and characters.
fn blanked(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &source[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if byte == b'"' {
            text(rest)
        } else if byte == b'\'' {
            character(rest)
        } else {
            0
        };
        if length == 0 {
            let next = rest.chars().next().unwrap();
            out.push(next);
            at += next.len_utf8();
        } else {
            out.push(' ');
            at += length;
        }
    }
    out
}

/// The length of a string literal.
fn text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a raw string literal, if one begins here.
fn raw_text(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix("br").or(rest.strip_prefix('r'))?;
    let hashes = marks.len() - marks.trim_start_matches('#').len();
    let text = marks[hashes..].strip_prefix('"')?;
    let end = text.find(&format!("\"{}", "#".repeat(hashes)))?;
    Some(rest.len() - text.len() + end + 1 + hashes)
}

/// The length of a character literal; 1 for the mark of a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => rest[2..]
            .find('\'')
            .map_or(rest.len(), |end| end + 3)
            .max(4),
        _ => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
    }
}

fn words(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = if is_word(first) {
            let end = rest
                .find(|character| !is_word(character))
                .unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        } else if rest.starts_with("::") {
            tokens.push(Token::Path);
            2
        } else {
            tokens.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Skips each item under an attribute `cfg` that names `test`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let end = attribute_end(tokens, at);
        let is_test = end.is_some_and(|end| {
            let words = &tokens[at..end];
            let named = |text: &str| words.iter().any(|token| token.is(text));
            named("cfg") && named("test") && !named("not")
        });
        match end {
            Some(end) if is_test => at = item_end(tokens, end),
            _ => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// The position after `#[…]` or `#![…]`, if an attribute begins here.
fn attribute_end(tokens: &[Token], at: usize) -> Option<usize> {
    if tokens.get(at)? != &Token::Sign('#') {
        return None;
    }
    let inner = usize::from(tokens.get(at + 1)? == &Token::Sign('!'));
    closed(tokens, at + 1 + inner, '[', ']')
}

/// The position after the bracket that closes the bracket at this position.
fn closed(tokens: &[Token], at: usize, open: char, close: char) -> Option<usize> {
    if tokens.get(at)? != &Token::Sign(open) {
        return None;
    }
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if *token == Token::Sign(open) {
            depth += 1;
        } else if *token == Token::Sign(close) {
            depth -= 1;
            if depth == 0 {
                return Some(index + 1);
            }
        }
    }
    None
}

/// The position after the item that begins here: other attributes, and all tokens up to `;` or the closing brace.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        if let Some(end) = attribute_end(tokens, at) {
            at = end;
        } else if let Some(end) = closed(tokens, at, '{', '}') {
            let again = tokens.get(end) == Some(&Token::Sign(';'));
            return end + usize::from(again);
        } else if tokens[at] == Token::Sign(';') {
            return at + 1;
        } else {
            at += 1;
        }
    }
    at
}
