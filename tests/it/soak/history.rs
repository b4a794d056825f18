//! What the database committed under load, validated against a model of its tables.
//!
//! Triggers note each row that a transaction of the program changes, in the same transaction: what was rolled back or lost is not in the
//! history, and what was committed is, whoever was told. The lines of one row are in the order of the commits, because it is locked while it
//! is noted. The model knows the calls of a quota one by one, and judges each change by the rules: the program's own decisions are not asked.
//! In the end the tables are those of the model.

use crate::harness::Postgres;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The tables, their keys and the columns that are noted.
const TABLES: [(&str, &str, &[&str]); 5] = [
    ("quota", "key", &["a", "b", "c", "d"]),
    ("request", "key", &["until"]),
    ("token", "key", &["said", "until"]),
    ("psu", "psu", &["tpp", "learned", "last_sca"]),
    ("change", "key", &["kind"]),
];

const DAY: i64 = 86_400;

/// The time that housekeeping leaves a request id after its end, and other rows, in seconds.
const ID_STAYS: i64 = 4 * 60;
const ROW_STAYS: i64 = 60;

/// Tokens last for minutes, and marks of removals and observations in the same table for a day or more.
const MARK: i64 = DAY / 2;

/// The state that is recorded.
pub(super) enum Recorded {
    File(PathBuf),
    Database(Box<tokio_postgres::Config>),
}

/// Rows by table and key.
type RowsByKey = BTreeMap<(String, String), Value>;

/// A row that a transaction changed.
#[derive(Clone, Debug)]
struct Line {
    /// The time of the database.
    at: i64,
    table: String,
    key: String,
    old: Option<Value>,
    new: Option<Value>,
}

/// The numbers of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) lines: usize,
    /// Calls that were taken, less those given back.
    pub(super) calls: usize,
    pub(super) returned: usize,
    pub(super) ids: usize,
    pub(super) tokens: usize,
}

impl Recorded {
    /// Begins a history.
    pub(super) fn begin(&self) {
        match self {
            Self::File(file) => connect(file).execute_batch(&in_sqlite()).unwrap(),
            Self::Database(config) => drop(Postgres::sql_on(config, &in_postgres()).unwrap()),
        }
    }

    /// Validates what was committed so far, if the core let this number of calls be given back.
    pub(super) fn validate(&self, given_back: usize) -> Summary {
        let lines = self.lines();
        let (summary, rows) = validate(&lines, given_back).unwrap();
        assert_eq!(rows, self.rows());
        // A change that was forgotten is found: one is taken out that another change of the same row follows.
        let followed = lines.iter().enumerate().position(|(at, line)| {
            let follows = |next: &Line| (&next.table, &next.key) == (&line.table, &line.key);
            line.table == "quota" && lines[at + 1..].iter().any(follows)
        });
        if let Some(followed) = followed {
            let mut forgotten = lines;
            forgotten.remove(followed);
            assert!(validate(&forgotten, given_back).is_err());
        }
        summary
    }

    fn lines(&self) -> Vec<Line> {
        let array = match self {
            Self::File(_) => "json_array(at, tbl, key, json(old), json(new))",
            Self::Database(_) => "json_build_array(at, tbl, key, old, new)::text",
        };
        let lines = self.ask(&format!("SELECT {array} FROM history ORDER BY seq"));
        lines.iter().map(|line| read(line)).collect()
    }

    /// The rows of the tables as they are, but those of the change log.
    fn rows(&self) -> RowsByKey {
        let tables = TABLES.iter().filter(|(table, ..)| *table != "change");
        let rows = tables.flat_map(|(table, key, columns)| {
            let array = match self {
                Self::File(_) => format!("json_array(hex({key}), {})", object("stored", columns)),
                Self::Database(_) => {
                    format!("json_build_array(stored.{key}, to_jsonb(stored))::text")
                }
            };
            let rows = self.ask(&format!("SELECT {array} FROM {table} AS stored"));
            rows.into_iter().map(|row| {
                let row: Value = serde_json::from_str(&row).unwrap();
                let key = row[0].as_str().unwrap().to_owned();
                (((*table).to_owned(), key), row[1].clone())
            })
        });
        rows.collect()
    }

    /// The first column of an answer.
    fn ask(&self, question: &str) -> Vec<String> {
        match self {
            Self::File(file) => {
                let sql = connect(file);
                let mut question = sql.prepare(question).unwrap();
                let rows = question.query_map([], |row| row.get(0)).unwrap();
                rows.map(Result::unwrap).collect()
            }
            Self::Database(config) => Postgres::sql_on(config, question).unwrap(),
        }
    }
}

/// A row of SQLite as JSON, with bytes in hexadecimal.
fn object(of: &str, columns: &[&str]) -> String {
    let cells = columns.iter().map(|name| match *name {
        "said" => format!("'{name}', hex({of}.{name})"),
        _ => format!("'{name}', {of}.{name}"),
    });
    format!("json_object({})", cells.collect::<Vec<_>>().join(", "))
}

fn connect(file: &Path) -> rusqlite::Connection {
    let sql = rusqlite::Connection::open(file).unwrap();
    sql.busy_timeout(crate::harness::LIMIT).unwrap();
    sql
}

fn read(line: &str) -> Line {
    let line: Value = serde_json::from_str(line).unwrap();
    let row = |row: &Value| (!row.is_null()).then(|| row.clone());
    Line {
        at: line[0].as_i64().unwrap(),
        table: line[1].as_str().unwrap().into(),
        key: line[2].as_str().unwrap().into(),
        old: row(&line[3]),
        new: row(&line[4]),
    }
}

/// The table and the triggers for a file. `INSERT OR REPLACE` tells no trigger what it replaces, so one before it reads that.
fn in_sqlite() -> String {
    let mut sql = String::from(
        "CREATE TABLE history (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL DEFAULT (unixepoch()), tbl TEXT, key TEXT, old TEXT, new TEXT);",
    );
    for (table, key, columns) in TABLES {
        let row = |of: &str| object(of, columns);
        let mut trigger = |event: &str, of: &str, old: &str, new: &str| {
            sql += &format!(
                "CREATE TRIGGER history_{table}_{} {event} ON {table} BEGIN \
                 INSERT INTO history (tbl, key, old, new) VALUES ('{table}', hex({of}.{key}), {old}, {new}); END;",
                event.replace(' ', "_")
            );
        };
        if table == "request" || table == "token" {
            let stored = format!(
                "(SELECT {} FROM {table} WHERE {key} = NEW.{key})",
                row(table)
            );
            trigger("BEFORE INSERT", "NEW", &stored, &row("NEW"));
        } else {
            trigger("AFTER INSERT", "NEW", "NULL", &row("NEW"));
        }
        if table != "change" {
            trigger("AFTER UPDATE", "NEW", &row("OLD"), &row("NEW"));
            trigger("AFTER DELETE", "OLD", &row("OLD"), "NULL");
        }
    }
    sql
}

fn in_postgres() -> String {
    let mut sql = String::from(
        "CREATE TABLE history (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             at bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()))::bigint, tbl text, key text, old jsonb, new jsonb);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO history (tbl, key, old, new)
             VALUES (TG_TABLE_NAME, coalesce(to_jsonb(NEW), to_jsonb(OLD)) ->> TG_ARGV[0], to_jsonb(OLD), to_jsonb(NEW));
             RETURN NULL; END $$;",
    );
    for (table, key, _) in TABLES {
        let events = if table == "change" {
            "INSERT"
        } else {
            "INSERT OR UPDATE OR DELETE"
        };
        sql += &format!(
            "CREATE TRIGGER history AFTER {events} ON {table} FOR EACH ROW EXECUTE FUNCTION note('{key}');"
        );
    }
    sql
}

/// The tables after the lines so far.
#[derive(Default)]
struct Model {
    rows: RowsByKey,
    /// The calls of each quota that were taken and not given back, in the order of their times.
    calls: BTreeMap<String, Vec<i64>>,
    /// PSUs that changed, and of which the other gateways were not told yet.
    untold: BTreeSet<String>,
    summary: Summary,
}

/// Judges a history line by line. One transaction may give a call back and take another one, which looks as if the second had replaced the
/// first before its time, so the calls that were given back are counted.
///
/// # Errors
/// The first line that the rules do not permit.
fn validate(lines: &[Line], given_back: usize) -> Result<(Summary, RowsByKey), String> {
    let mut model = Model::default();
    for line in lines {
        model
            .judge(line)
            .map_err(|fault| format!("{fault}: {line:?}"))?;
        model.summary.lines += 1;
        if model.summary.returned > given_back {
            return Err(format!("a call was replaced that still counts: {line:?}"));
        }
    }
    if let Some(psu) = model.untold.first() {
        return Err(format!("no other gateway was told of {psu}"));
    }
    model.summary.calls = model.calls.values().map(Vec::len).sum();
    Ok((model.summary, model.rows))
}

fn number(row: Option<&Value>, column: &str) -> i64 {
    row.and_then(|row| row[column].as_i64()).unwrap_or(0)
}

impl Model {
    fn judge(&mut self, line: &Line) -> Result<(), String> {
        if line.table == "change" {
            if number(line.new.as_ref(), "kind") == 0 {
                self.untold.remove(&line.key);
            }
            return Ok(());
        }
        let key = (line.table.clone(), line.key.clone());
        let stored = match &line.new {
            Some(new) => self.rows.insert(key, new.clone()),
            None => self.rows.remove(&key),
        };
        if stored != line.old {
            return Err(format!("the row was {stored:?}"));
        }
        match line.table.as_str() {
            "quota" => self.judge_calls(line),
            "request" => self.judge_id(line),
            "token" => self.judge_token(line),
            _ => self.judge_psu(line),
        }
    }

    /// QUO-1: never five calls in 24 hours.
    fn judge_calls(&mut self, line: &Line) -> Result<(), String> {
        let cells = |row: &Option<Value>| {
            let cells =
                ["a", "b", "c", "d"].map(|name| row.as_ref().and_then(|row| row[name].as_i64()));
            cells.into_iter().flatten().collect::<Vec<_>>()
        };
        let (mut gone, mut new) = (cells(&line.old), cells(&line.new));
        // What is in both stays.
        new.retain(|call| match gone.iter().position(|other| other == call) {
            Some(at) => {
                gone.remove(at);
                false
            }
            None => true,
        });
        let calls = self.calls.entry(line.key.clone()).or_default();
        // The return of a call brings the one back that it had replaced.
        let known = calls.clone();
        calls.extend(
            new.iter()
                .filter(|call| !known.contains(call) || **call + DAY > line.at),
        );
        calls.sort_unstable();
        // A call that gave its cell to another one, or whose row was removed, is over. Else it was given back.
        for call in gone {
            let is_over = |now: i64| call + DAY <= now;
            if !is_over(line.at) && !new.iter().copied().any(is_over) {
                let at = calls.iter().position(|other| *other == call);
                calls.remove(at.ok_or("a call was given back that was not taken")?);
                self.summary.returned += 1;
            } else if line.new.is_none() && call + DAY + ROW_STAYS > line.at {
                return Err("a row was removed early".into());
            }
        }
        if calls.windows(5).any(|five| five[4] - five[0] < DAY) {
            return Err("a fifth call".into());
        }
        Ok(())
    }

    /// REP-1: an id is used once in its time, and forgotten after it. The core is always there: no id is given back.
    fn judge_id(&mut self, line: &Line) -> Result<(), String> {
        self.summary.ids += usize::from(line.new.is_some());
        let ends = number(line.old.as_ref(), "until");
        if line.new.is_none() && ends + ID_STAYS > line.at {
            return Err("an id was forgotten early".into());
        }
        if line.old.is_some() && ends >= line.at {
            return Err("an id was used twice".into());
        }
        Ok(())
    }

    /// SCA-12: a token ends once, in one way.
    fn judge_token(&mut self, line: &Line) -> Result<(), String> {
        let ends = number(line.old.as_ref(), "until");
        if number(line.new.as_ref(), "until") - line.at > MARK {
            return Ok(());
        }
        self.summary.tokens += usize::from(line.new.is_some());
        match (&line.old, &line.new) {
            (Some(_), None) if ends + DAY + ROW_STAYS > line.at => {
                Err("a token was forgotten early".into())
            }
            (Some(_), Some(_)) if ends >= line.at => Err("a token was spent twice".into()),
            _ => Ok(()),
        }
    }

    /// SCA-3, SCA-19: a PSU that the bank bound stays with its TPP, and its last SCA only becomes later.
    fn judge_psu(&mut self, line: &Line) -> Result<(), String> {
        if !self.untold.insert(line.key.clone()) {
            return Err("no other gateway was told of the change before".into());
        }
        let (Some(old), Some(new)) = (&line.old, &line.new) else {
            return Ok(());
        };
        // SQLite has numbers.
        let learned = |row: &Value| row["learned"] == json!(true) || row["learned"] == json!(1);
        if old["tpp"] != new["tpp"] {
            return if learned(old) {
                Ok(())
            } else {
                Err("the PSU of another TPP".into())
            };
        }
        if learned(new) && !learned(old) {
            return Err("the bank's binding became a learned one".into());
        }
        if number(Some(new), "last_sca") < number(Some(old), "last_sca") {
            return Err("an SCA became earlier".into());
        }
        Ok(())
    }
}

/// A true history: four calls, of which one is given back and taken again, an id, a token, and a PSU with two SCAs.
fn a_true_history() -> Vec<Line> {
    let line = |at: i64, table: &str, old: Value, new: Value| {
        read(&json!([at, table, "0A", old, new]).to_string())
    };
    let quota = |calls: [Option<i64>; 4]| json!({"a": calls[0], "b": calls[1], "c": calls[2], "d": calls[3]});
    let none = Value::Null;
    let psu = |sca: i64| json!({"tpp": 1, "learned": 0, "last_sca": sca});
    let change = || line(0, "change", Value::Null, json!({"kind": 0}));
    let (one, two) = (
        quota([Some(10), None, None, None]),
        quota([Some(10), Some(20), None, None]),
    );
    let three = quota([Some(10), Some(20), Some(30), None]);
    let four = quota([Some(10), Some(20), Some(30), Some(40)]);
    let day = quota([Some(10 + DAY), Some(20), Some(30), Some(40)]);
    vec![
        line(10, "quota", none.clone(), one.clone()),
        line(20, "quota", one.clone(), two.clone()),
        line(21, "quota", two.clone(), one.clone()),
        line(22, "quota", one, two.clone()),
        line(30, "quota", two, three.clone()),
        line(40, "quota", three, four.clone()),
        line(10 + DAY, "quota", four, day),
        line(50, "request", none.clone(), json!({"until": 50 + DAY})),
        line(
            50 + DAY + ID_STAYS,
            "request",
            json!({"until": 50 + DAY}),
            none.clone(),
        ),
        line(
            60,
            "token",
            none.clone(),
            json!({"said": "AA", "until": 360}),
        ),
        line(70, "psu", none, psu(70)),
        change(),
        line(80, "psu", psu(70), psu(80)),
        change(),
    ]
}

#[test]
fn a_true_history_is_valid() {
    let mut lines = a_true_history();
    let expected = Summary {
        lines: 14,
        calls: 5,
        returned: 1,
        ids: 1,
        tokens: 1,
    };
    assert_eq!(validate(&lines, 1).unwrap().0, expected);
    // The call of the next day is given back, and brings the first one back.
    let mut back = lines[6].clone();
    (back.old, back.new) = (back.new, back.old);
    back.at += 1;
    lines.push(back);
    let expected = Summary {
        lines: 15,
        calls: 4,
        returned: 2,
        ..expected
    };
    assert_eq!(validate(&lines, 2).unwrap().0, expected);
}

#[test]
fn each_lie_in_a_history_is_found() {
    /// What is wrong then.
    type Lie = (&'static str, fn(&mut Vec<Line>));
    let lies: [Lie; 12] = [
        ("a fifth call", |lines| {
            lines[6].new.as_mut().unwrap()["a"] = json!(9 + DAY);
        }),
        ("a call was replaced that still counts", |lines| {
            lines[6].new.as_mut().unwrap()["a"] = json!(9 + DAY);
            lines[6].at -= 1;
        }),
        ("the row was", |lines| drop(lines.remove(4))),
        ("a call was replaced that still counts", |lines| {
            lines[6].new.as_mut().unwrap()["b"] = Value::Null;
            lines[6].at = 19 + DAY;
        }),
        ("the row was", |lines| lines.swap(4, 5)),
        ("an id was forgotten early", |lines| lines[8].at -= 1),
        ("an id was used twice", |lines| {
            lines[8].new = lines[8].old.clone();
            lines[8].at = 50 + DAY;
        }),
        ("a token was spent twice", |lines| {
            let mut again = lines[9].clone();
            again.old = again.new.clone();
            again.new.as_mut().unwrap()["said"] = json!("BB");
            lines.push(again);
        }),
        ("the PSU of another TPP", |lines| {
            lines[12].new.as_mut().unwrap()["tpp"] = json!(2);
        }),
        ("the bank's binding became a learned one", |lines| {
            lines[12].new.as_mut().unwrap()["learned"] = json!(true);
        }),
        ("an SCA became earlier", |lines| {
            lines[12].new.as_mut().unwrap()["last_sca"] = json!(69);
        }),
        ("no other gateway was told", |lines| drop(lines.remove(13))),
    ];
    for (found, lie) in lies {
        let mut lines = a_true_history();
        lie(&mut lines);
        let fault = validate(&lines, 1).expect_err(found);
        assert!(fault.contains(found), "{found}: {fault}");
    }
}
