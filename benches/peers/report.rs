//! The results as tables and as a chart.

use crate::load::Sample;
use std::fmt::Write;

/// The samples of one entry of a load, one for each round.
pub struct Row {
    /// The name in the table.
    pub name: String,
    /// One for each round, in their order.
    pub samples: Vec<Sample>,
}

/// The results of a load.
pub struct Table {
    /// Its short name.
    pub name: &'static str,
    /// The description of the requests.
    pub title: &'static str,
    /// The entry for comparison.
    pub base: usize,
    /// Its entries.
    pub rows: Vec<Row>,
}

impl Table {
    /// The median of one figure's ratio between two entries, paired round by round.
    pub fn ratio(&self, of: usize, to: usize, figure: impl Fn(&Sample) -> f64) -> [f64; 3] {
        let (of, to) = (&self.rows[of].samples, &self.rows[to].samples);
        let mut ratios: Vec<f64> = of
            .iter()
            .zip(to)
            .map(|(of, to)| figure(of) / figure(to))
            .collect();
        ratios.sort_by(f64::total_cmp);
        [median(&ratios), ratios[0], ratios[ratios.len() - 1]]
    }

    /// The entry of this name.
    pub fn row(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.name == name)
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let base = &self.rows[self.base].name;
        let mut text = format!(
            "### {}\n\n{}\n\n| | requests/s | p50 ms | p99 ms | CPU µs/request | CPU against {base} |\n|---|---:|---:|---:|---:|---:|\n",
            self.name, self.title
        );
        for (number, row) in self.rows.iter().enumerate() {
            let [ratio, least, most] = self.ratio(number, self.base, |sample| sample.cpu);
            let times = |figure: fn(&Sample) -> f64| {
                let time = middle(&row.samples, figure);
                if time > 0.0 {
                    format!("{time:.2}")
                } else {
                    "–".into()
                }
            };
            let _ = writeln!(
                text,
                "| {} | {:.0} | {} | {} | {:.1} | {ratio:.2} ({least:.2}–{most:.2}) |",
                row.name,
                middle(&row.samples, |sample| sample.rate),
                times(|sample| sample.p50),
                times(|sample| sample.p99),
                middle(&row.samples, |sample| sample.cpu),
            );
        }
        text
    }

    /// CPU per request as horizontal bars.
    pub fn chart(&self) -> String {
        let cpu: Vec<f64> = self
            .rows
            .iter()
            .map(|row| middle(&row.samples, |sample| sample.cpu))
            .collect();
        let most = cpu.iter().copied().fold(1.0, f64::max);
        let height = 50 + 30 * self.rows.len();
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" viewBox=\"0 0 720 {height}\" \
             font-family=\"sans-serif\" font-size=\"14\" role=\"img\" aria-label=\"CPU per request\">\n\
             <rect width=\"720\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"10\" y=\"24\" font-weight=\"bold\">CPU per request, µs: {}</text>\n",
            self.title
        );
        for (number, (row, cpu)) in self.rows.iter().zip(&cpu).enumerate() {
            let y = 40 + 30 * number;
            let width = cpu / most * 400.0;
            let colour = if row.name == "Portvakt" {
                "#1b6e53"
            } else {
                "#9aa7b1"
            };
            let _ = writeln!(
                text,
                "<text x=\"220\" y=\"{}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"230\" y=\"{y}\" width=\"{width:.1}\" height=\"22\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{cpu:.1}</text>",
                y + 16,
                row.name,
                width + 238.0,
                y + 16,
            );
        }
        text + "</svg>\n"
    }
}

/// The median of one figure.
pub fn middle(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(&sorted(samples, figure))
}

/// The lower quartile of one figure: other load on the machine increases a time in some rounds more than in others.
pub fn quiet(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    sorted(samples, figure)[samples.len() / 4]
}

fn sorted(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
    let mut figures: Vec<f64> = samples.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}
