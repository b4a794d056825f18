//! The table: lines of figures for each peer, and whether Portvakt reaches the bar of each.

use std::fmt::Write;

/// Columns of the table, Portvakt first.
pub const PEERS: usize = 3;

/// A figure of a line.
#[derive(Clone, Copy)]
pub struct Metric {
    /// The name, and the unit after it.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// Digits after the point.
    pub digits: usize,
    /// Which one is better.
    pub better: Better,
    /// The absolute bar for Portvakt.
    pub bar: Option<f64>,
    /// Portvakt may not be worse than the better peer, but for this much: noise, or a clock's resolution.
    pub slack: Option<f64>,
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
}

/// How much worse than the better peer counts as equal: two runs of one peer differ by this share.
const NOISE: f64 = 0.2;

/// A line of the table.
pub struct Line {
    /// The number in the list of attacks.
    pub row: &'static str,
    /// The attack.
    pub what: String,
    /// The figures.
    pub metrics: Vec<Metric>,
    /// For each peer the value of each figure; `None` where the peer has none.
    pub values: [Vec<Option<f64>>; PEERS],
}

impl Line {
    /// A line without values.
    pub fn new(row: &'static str, what: impl Into<String>, metrics: Vec<Metric>) -> Self {
        let none = vec![None; metrics.len()];
        Self {
            row,
            what: what.into(),
            metrics,
            values: std::array::from_fn(|_| none.clone()),
        }
    }

    /// The line of the table, in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("| {} | {} |", self.row, self.what);
        for values in &self.values {
            let cell: Vec<_> = self.metrics.iter().zip(values).map(shown).collect();
            let is_empty = values.iter().all(Option::is_none);
            let cell = if is_empty { "-".into() } else { cell.concat() };
            let _ = write!(text, " {} |", cell.trim_end_matches("; "));
        }
        let measured = self.metrics.iter().zip(&self.values[0]);
        let bars: Vec<_> = measured
            .filter_map(|(metric, value)| value.and_then(|_| metric.bar()))
            .collect();
        let _ = write!(text, " {} |", bars.join("; "));
        let missed = self.verdict();
        let verdict = missed.map_or("yes".into(), |missed| format!("**no**: {missed}"));
        let _ = writeln!(text, " {verdict} |");
        text
    }

    /// The line with the median of each figure in three runs.
    pub fn median(runs: [Self; 3]) -> Self {
        let values = std::array::from_fn(|peer| {
            let numbers = 0..runs[0].metrics.len();
            let median = |number: usize| {
                let mut found: Vec<f64> = runs
                    .iter()
                    .filter_map(|run| run.values[peer][number])
                    .collect();
                found.sort_by(f64::total_cmp);
                found.get(found.len() / 2).copied()
            };
            numbers.map(median).collect()
        });
        let [first, ..] = runs;
        Self { values, ..first }
    }

    /// The bars that Portvakt does not reach, if any.
    pub fn verdict(&self) -> Option<String> {
        let missed = self.missed();
        (!missed.is_empty()).then(|| missed.join("; "))
    }

    fn missed(&self) -> Vec<String> {
        let [own, peers @ ..] = &self.values;
        let mut missed = Vec::new();
        for (number, metric) in self.metrics.iter().enumerate() {
            let Some(own) = own[number] else { continue };
            if metric.bar.is_some_and(|bar| metric.is_worse(own, bar)) {
                missed.push(format!("{} misses the bar", metric.name));
            }
            let Some(slack) = metric.slack else { continue };
            let best = peers
                .iter()
                .filter_map(|values| values[number])
                .reduce(|one, other| {
                    if metric.is_worse(one, other) {
                        other
                    } else {
                        one
                    }
                });
            let Some(best) = best else { continue };
            let allowed = match metric.better {
                Better::Lower => best * (1.0 + NOISE) + slack,
                Better::Higher => best - slack,
            };
            if metric.is_worse(own, allowed) {
                missed.push(format!("{} is worse than the better peer's", metric.name));
            }
        }
        missed
    }
}

impl Metric {
    fn is_worse(&self, one: f64, other: f64) -> bool {
        match self.better {
            Better::Lower => one > other,
            Better::Higher => one < other,
        }
    }

    fn bar(&self) -> Option<String> {
        let sign = match self.better {
            Better::Lower => '≤',
            Better::Higher => '≥',
        };
        let bar = self.bar?;
        Some(format!("{} {sign} {bar}{}", self.name, self.unit))
    }
}

fn shown((metric, value): (&Metric, &Option<f64>)) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let value = match value.is_finite() {
        true => format!("{value:.*}{}", metric.digits, metric.unit),
        false => "never".into(),
    };
    format!("{} {value}; ", metric.name)
}

/// The head of the table.
pub const HEAD: &str =
    "| row | attack | Portvakt | nginx | HAProxy | bar | holds |\n|---|---|---|---|---|---|---|\n";
