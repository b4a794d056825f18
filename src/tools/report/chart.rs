//! The chart of a report: panels of days.

use super::{
    beside::{Beside, Figures},
    day::Day,
    own::OwnDay,
    sca::ScaDay,
};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const PANEL: f64 = 160.0;
const GAP: f64 = 60.0;

/// A line of a panel.
struct Series<'a> {
    name: &'a str,
    colour: &'a str,
    /// A point for each day; `None` where there is no figure.
    points: Vec<Option<f64>>,
}

/// A panel: its title, and its lines.
type Panel = (&'static str, Vec<Series<'static>>);

/// Draws the days as SVG.
pub(super) fn draw(days: &[Day], beside: &Beside) -> String {
    let mut panels = panels(days, beside.own.as_ref());
    if let Some(sca) = &beside.sca {
        panels.push(sca_panel(days, sca));
    }
    let height = number(panels.len()).mul_add(PANEL + GAP, 20.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut top = 40.0;
    for (title, series) in &panels {
        draw_panel(&mut svg, top, title, series);
        top += PANEL + GAP;
    }
    let ends = [
        (days.first(), LEFT, "start"),
        (days.last(), WIDTH - 20.0, "end"),
    ];
    for (day, x, anchor) in ends {
        if let Some(day) = day {
            // Writing to a String cannot fail.
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                height - 10.0,
                day.date
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The panels of the dedicated interface, with the own channel where its figures are known.
fn panels(days: &[Day], own: Option<&Figures<OwnDay>>) -> Vec<Panel> {
    let line = |name, colour, figure: &dyn Fn(&Day) -> Option<f64>| Series {
        name,
        colour,
        points: days.iter().map(figure).collect(),
    };
    let own_line = |figure: fn(&OwnDay) -> Option<f64>| {
        own.map(|own| {
            line("own channel", "#6b2fa0", &|day| {
                own.of(day.date).and_then(figure)
            })
        })
    };
    let mut availability = vec![line("availability", "#1b7f4b", &|day| {
        Some(day.availability())
    })];
    availability.extend(own_line(|own| Some(own.availability)));
    let mut means = vec![
        line("AIS", "#1f5fbf", &|day| day.ais.mean()),
        line("PIS", "#b35900", &|day| day.pis.mean()),
    ];
    means.extend(own_line(|own| own.mean));
    let mut errors = vec![line("errors", "#b3261e", &|day| Some(day.error_rate()))];
    errors.extend(own_line(|own| Some(own.error_rate())));
    vec![
        ("Availability, %", availability),
        ("Mean response time, ms", means),
        ("Error rate, %", errors),
    ]
}

fn sca_panel(days: &[Day], sca: &Figures<ScaDay>) -> Panel {
    let line = |name, colour, figure: fn(&ScaDay) -> Option<u64>| {
        let count = |day: &Day| sca.of(day.date).and_then(figure).map(float);
        let points = days.iter().map(count).collect();
        Series {
            name,
            colour,
            points,
        }
    };
    let series = vec![
        line("started", "#1f5fbf", |sca| sca.started),
        line("completed", "#1b7f4b", |sca| sca.completed),
        line("failed", "#b3261e", |sca| sca.failed),
    ];
    ("SCAs", series)
}

fn draw_panel(svg: &mut String, top: f64, title: &str, series: &[Series<'_>]) {
    let values = series
        .iter()
        .flat_map(|series| series.points.iter().flatten());
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    let is_empty = least > most;
    // Figures that never change lie on the middle line.
    let (least, most) = match (is_empty, most - least < 1e-9) {
        (true, _) => (0.0, 1.0),
        (false, true) => (least - 1.0, most + 1.0),
        (false, false) => (least, most),
    };
    let bottom = top + PANEL;
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>\n\
         <path d=\"M{LEFT} {top}V{bottom}H{}\" fill=\"none\" stroke=\"#666666\"/>",
        top - 10.0,
        WIDTH - 20.0
    );
    for (value, y) in [(most, top + 10.0), (least, bottom)] {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{value:.2}</text>",
            LEFT - 6.0
        );
    }
    for (index, series) in series.iter().enumerate() {
        let count = series.points.len().saturating_sub(1).max(1);
        let step = (WIDTH - 20.0 - LEFT) / number(count);
        let mut path = String::new();
        let mut pen = 'M';
        for (place, point) in series.points.iter().enumerate() {
            let Some(value) = point else {
                pen = 'M';
                continue;
            };
            let (x, y) = (
                number(place).mul_add(step, LEFT),
                bottom - (value - least) / (most - least) * PANEL,
            );
            // A point of its own is drawn as a dot by its round end.
            let _ = write!(path, "{pen}{x:.1} {y:.1}L{x:.1} {y:.1}");
            pen = 'L';
        }
        let Series { name, colour, .. } = series;
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linecap=\"round\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>",
            number(index).mul_add(-90.0, WIDTH - 20.0),
            top - 10.0
        );
    }
}

#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a number of days or lines"
)]
const fn number(count: usize) -> f64 {
    count as f64
}

#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a point of a chart needs no more than 53 bits"
)]
const fn float(count: u64) -> f64 {
    count as f64
}
