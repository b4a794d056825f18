//! Words of answers, by which the answers to one value of a fact are told from those to another.
//!
//! An answer is a set of words, with and without the name of the member that holds them. A word is a mark only where every answer to
//! one value has it and no answer to the other: so ids, times, links and padding that are new in each answer are none, and the form of
//! the body and its white space do not count. Ids that stay the same, such as those of accounts, do count. Deliberately not here:
//! requests.

use super::session::Outcome;
use serde_json::Value;
use std::collections::BTreeSet;

/// The name of a member in lower case, and a word of its value.
type Word = (String, String);

/// The name under which the status stands. Names of members lose their line feeds, so none of them is the same.
const STATUS: &str = "\n";

/// The name of no member.
const ANYWHERE: &str = "";

/// The words of one answer. Without an answer there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Words(BTreeSet<Word>);

/// Answers to requests with the same facts, in the order of the requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct View(Vec<Words>);

/// Words by which the answers of one view are recognised.
#[derive(Clone, Debug)]
pub(super) struct Marks(BTreeSet<Word>);

impl View {
    /// Adds the answer to a further request.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.0.push(Words::of(outcome));
    }

    /// The words that all answers here have, and none of those beside. The status counts only where the bodies have no mark.
    pub(super) fn marks(&self, beside: &Self) -> Marks {
        let mut answers = self.0.iter();
        let mut marks = answers.next().cloned().unwrap_or_default().0;
        for Words(words) in answers {
            marks.retain(|word| words.contains(word));
        }
        for Words(words) in &beside.0 {
            marks.retain(|word| !words.contains(word));
        }
        if marks.iter().any(|(name, _)| name != STATUS) {
            marks.retain(|(name, _)| name != STATUS);
        }
        Marks(marks)
    }
}

impl Marks {
    /// Whether nothing tells the views apart.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of the marks that an answer has.
    pub(super) fn within(mut self, outcome: &Outcome) -> Self {
        let Words(words) = Words::of(outcome);
        self.0.retain(|word| words.contains(word));
        self
    }
}

impl Words {
    fn of(outcome: &Outcome) -> Self {
        let answer = outcome.answer.as_ref();
        answer.map_or_else(
            |_| Self::default(),
            |answer| Self::read(answer.status, &answer.body),
        )
    }

    fn read(status: u16, body: &[u8]) -> Self {
        let mut words = Self::default();
        words.add(STATUS, &status.to_string());
        match serde_json::from_slice(body) {
            Ok(value) => words.add_value(ANYWHERE, &value),
            Err(_) => words.add_text(ANYWHERE, &String::from_utf8_lossy(body)),
        }
        words
    }

    fn add(&mut self, name: &str, word: &str) {
        self.0.insert((name.to_owned(), word.to_owned()));
    }

    fn add_value(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.add_value(&name.replace('\n', " ").to_lowercase(), value);
                }
            }
            // An empty list says something too.
            Value::Array(entries) if entries.is_empty() => self.add(name, "[]"),
            Value::Array(entries) => {
                for entry in entries {
                    self.add_value(name, entry);
                }
            }
            Value::String(text) => self.add_text(name, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.add(name, &value.to_string()),
        }
    }

    /// The whole text and its words, so that an id in the middle of a text hides no other word.
    fn add_text(&mut self, name: &str, text: &str) {
        let text = text.to_lowercase();
        let is_of_word = |letter: char| letter.is_alphanumeric() || "-_.@+".contains(letter);
        let words = text.split(|letter: char| !is_of_word(letter));
        for word in words.filter(|word| !word.is_empty()) {
            self.add(name, word);
            self.add(ANYWHERE, word);
        }
        self.add(name, text.trim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(answers: &[(u16, &str)]) -> View {
        let answers = answers.iter();
        View(
            answers
                .map(|(status, body)| Words::read(*status, body.as_bytes()))
                .collect(),
        )
    }

    fn marks(own: &[(u16, &str)], other: &[(u16, &str)]) -> Vec<String> {
        let Marks(marks) = view(own).marks(&view(other));
        marks.into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn what_is_new_in_each_answer_is_no_mark() {
        for [first, second, third, fourth] in [
            [
                r#"{"id": "a1", "_links": {"self": {"href": "/x/a1"}}, "at": 1}"#,
                r#"{"id": "a2", "_links": {"self": {"href": "/x/a2"}}, "at": 1}"#,
                r#"{"id": "a3", "_links": {"self": {"href": "/x/a3"}}, "at": 1}"#,
                r#"{"id": "a4", "_links": {"self": {"href": "/x/a4"}}, "at": 2}"#,
            ],
            [
                r#"{"a": [1, 2]}"#,
                r#"{"a": [2, 1], "pad": "xx"}"#,
                r#"{"pad": "x", "a": [2,1]}"#,
                "{\"a\" : [1,\n2]}",
            ],
        ] {
            let (own, other) = ([(200, first), (200, third)], [(200, second), (200, fourth)]);
            assert_eq!(marks(&own, &other), [""; 0], "{first}");
            assert_eq!(marks(&other, &own), [""; 0], "{first}");
        }
    }

    #[test]
    fn what_stays_is_a_mark() {
        for (own, other, expected) in [
            // A stable id among new ones, whatever stands around it.
            (
                [
                    r#"{"id": "a1", "account": "K-1"}"#,
                    r#"{"d": {"id": "a3", "account": "K-1"}}"#,
                ],
                [
                    r#"{"id": "a2", "account": "K-2"}"#,
                    r#"{"id": "a4", "account": "K-2"}"#,
                ],
                &["k-1", "k-1"][..],
            ),
            // An id in the middle of a text, and JSON in a text.
            (
                [
                    "\"request a1 of A@B.example\"",
                    "\"request a3 of a@b.example\"",
                ],
                [
                    "\"request a2 of c@d.example\"",
                    "\"request a4 of c@d.example\"",
                ],
                &["a@b.example"],
            ),
            (
                [
                    r#"{"data": "{\"n\":\"x\",\"i\":\"1\"}"}"#,
                    r#"{"data": "{\"n\":\"x\",\"i\":\"2\"}"}"#,
                ],
                [
                    r#"{"data": "{\"n\":\"y\",\"i\":\"3\"}"}"#,
                    r#"{"data": "{\"n\":\"y\",\"i\":\"4\"}"}"#,
                ],
                &["x", "x"],
            ),
            (["[]", "[]"], [r#"["a"]"#, r#"["a"]"#], &["[]"]),
            (["no", "no"], ["yes", "yes"], &["no"]),
        ] {
            let [own, other] = [own, other].map(|bodies| bodies.map(|body| (200, body)));
            assert_eq!(marks(&own, &other), expected, "{own:?}");
        }
    }

    #[test]
    fn the_status_counts_only_between_equal_bodies() {
        let (own, other) = ([(200, "{}"); 2], [(404, "{}"); 2]);
        assert_eq!(marks(&own, &other), ["200"]);
        let own = [(200, r#"{"a": true}"#); 2];
        assert_eq!(marks(&own, &other), ["true"]);
        assert_eq!(marks(&[], &other), [""; 0]);
    }
}
