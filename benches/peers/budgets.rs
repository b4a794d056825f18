//! The budgets: required ratios between figures of the loads, and whether the measured ones keep them.

use crate::{
    load::Sample,
    loads::{WITH, WITH_RESTING, WITHOUT, WITHOUT_RESTING},
    report::{Table, middle, quiet},
};
use std::fmt::Write;

/// A required ratio, and the ratio to reach.
struct Budget {
    load: &'static str,
    what: &'static str,
    of: &'static str,
    to: &'static str,
    figure: Figure,
    must: f64,
    goal: Option<f64>,
}

/// The compared figure, and whether less is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    Cpu,
    Rate,
    P99,
}

const BUDGETS: [Budget; 10] = {
    const fn cpu(what: &'static str, to: &'static str, must: f64, goal: f64) -> Budget {
        Budget {
            load: "get",
            what,
            of: "Portvakt",
            to,
            figure: Figure::Cpu,
            must,
            goal: Some(goal),
        }
    }
    const fn refused(of: &'static str, must: f64) -> Budget {
        Budget {
            load: "refused",
            what: "CPU of a refusal",
            of,
            to: "accepted",
            figure: Figure::Cpu,
            must,
            goal: None,
        }
    }
    const LUA: &str = "nginx + Lua, signature only";
    [
        cpu("CPU, all checks on", LUA, 1.10, 1.00),
        cpu("CPU, all checks on", "nginx + Lua, same checks", 0.85, 0.80),
        cpu("CPU, all checks on", "bare", 1.12, 1.05),
        Budget {
            what: "requests per second",
            figure: Figure::Rate,
            must: 1.0,
            goal: None,
            ..cpu("", LUA, 1.0, 1.0)
        },
        Budget {
            what: "p99",
            figure: Figure::P99,
            must: 1.0,
            goal: None,
            ..cpu("", LUA, 1.0, 1.0)
        },
        Budget {
            load: "paced",
            what: "p99 at the same rate",
            of: "Portvakt, resting",
            to: "nginx + Lua, signature only, resting",
            figure: Figure::P99,
            must: 1.0,
            goal: None,
        },
        Budget {
            load: "durable",
            what: "requests per second",
            of: WITHOUT,
            to: WITH,
            figure: Figure::Rate,
            must: 0.5,
            goal: None,
        },
        refused("unsigned", 0.6),
        refused("bad signature", 1.0),
        refused("unknown certificate", 0.6),
    ]
};

/// The budgets of the measured tables, in Markdown.
pub fn markdown(tables: &[Table]) -> String {
    let mut text = String::from(
        "### Budgets\n\n| | against | measured | must | goal |\n|---|---|---:|---:|---:|\n",
    );
    for budget in &BUDGETS {
        let Some(table) = tables.iter().find(|table| table.name == budget.load) else {
            continue;
        };
        let (Some(of), Some(to)) = (table.row(budget.of), table.row(budget.to)) else {
            continue;
        };
        let [ratio, least, most] = table.ratio(of, to, |sample| match budget.figure {
            Figure::Cpu => sample.cpu,
            Figure::Rate => sample.rate,
            Figure::P99 => sample.p99,
        });
        let (sign, is_held) = match budget.figure {
            Figure::Rate => ("≥", ratio >= budget.must),
            Figure::Cpu | Figure::P99 => ("≤", ratio <= budget.must),
        };
        let of_quiet = |row: usize| quiet(&table.rows[row].samples, |sample| sample.p99);
        let quiet_rounds = match budget.figure {
            Figure::P99 => format!(", lower quartiles {:.2}", of_quiet(of) / of_quiet(to)),
            Figure::Cpu | Figure::Rate => String::new(),
        };
        let held = if is_held { "" } else { " **missed**" };
        let goal = budget
            .goal
            .map_or("–".to_owned(), |goal| format!("{sign} {goal:.2}"));
        let _ = writeln!(
            text,
            "| {}, {}: {} | {} | {ratio:.2} ({least:.2}–{most:.2}){quiet_rounds}{held} | {sign} {:.2} | {goal} |",
            budget.load, budget.of, budget.what, budget.to, budget.must
        );
    }
    for (without, with) in [(WITHOUT, WITH), (WITHOUT_RESTING, WITH_RESTING)] {
        for table in tables {
            let (Some(without), Some(with)) = (table.row(without), table.row(with)) else {
                continue;
            };
            let of =
                |row: usize, figure: fn(&Sample) -> f64| middle(&table.rows[row].samples, figure);
            let [p99, base] = [without, with].map(|row| of(row, |sample| sample.p99));
            let commit = of(without, |sample| sample.commit);
            let _ = writeln!(
                text,
                "\n{}: 99 of 100 calls took at most {p99:.2} ms, {:.2} ms more than those {}; a group commit took \
                 {commit:.2} ms, so that is {:.1} of them, and {:.1} with all the waiting for the core.",
                table.rows[without].name,
                p99 - base,
                table.rows[with].name,
                (p99 - base) / commit,
                p99 / commit
            );
        }
    }
    text
}
