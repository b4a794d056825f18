//! From the source of a dashboard (`dashboards/panels/NAME.yaml`) to the JSON that Grafana imports (`dashboards/NAME.json`).
//!
//! The source says only how the panels differ. Everything that they share stands here once: data source, variables, sizes, places.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The width of Grafana's grid.
const COLUMNS: u64 = 24;

/// A dashboard.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    title: String,
    about: String,
    rows: Vec<Row>,
}

/// A row of panels under a heading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    row: String,
    panels: Vec<Panel>,
}

/// A panel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    /// Its description: the remedy when it looks wrong.
    wrong: String,
    #[serde(default)]
    kind: Kind,
    /// A unit of Grafana.
    unit: String,
    /// Columns of 24.
    #[serde(default = "third")]
    width: u64,
    /// Units of Grafana's grid, if not those of its kind.
    height: Option<u64>,
    /// Whether the series are stacked.
    #[serde(default)]
    stack: bool,
    /// The highest value of the axis.
    max: Option<u64>,
    /// Where a number of the panel, which is green, turns orange and red.
    limits: Option<[f64; 2]>,
    /// What stands there where no series is left, if that is well.
    empty: Option<String>,
    /// Words for values.
    #[serde(default)]
    words: Map<String, Value>,
    /// By legend.
    queries: Map<String, Value>,
}

const fn third() -> u64 {
    8
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Lines over time.
    #[default]
    Timeseries,
    /// The last value, large.
    Stat,
    /// The last values, one in each line.
    Table,
}

impl Kind {
    const fn height(self) -> u64 {
        match self {
            Self::Stat => 4,
            Self::Timeseries | Self::Table => 8,
        }
    }
}

/// The dashboard as Grafana's model of 10.1 and later describes it.
pub(crate) fn dashboard(name: &str, source: &Source) -> Value {
    let mut panels: Vec<Value> = Vec::new();
    let mut y = 0;
    for row in &source.rows {
        let id = panels.len() + 1;
        panels.push(json!({
            "id": id, "type": "row", "title": row.row, "collapsed": false, "panels": [],
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
        }));
        y += 1;
        for line in lines(&row.panels) {
            let heights = line
                .iter()
                .map(|panel| panel.height.unwrap_or(panel.kind.height()));
            let height = heights.max().unwrap_or_default();
            let mut x = 0;
            for panel in line {
                let place = json!({"h": height, "w": panel.width, "x": x, "y": y});
                panels.push(panel.model(panels.len() + 1, &place));
                x += panel.width;
            }
            y += height;
        }
    }
    json!({
        "uid": format!("portvakt-{name}"),
        "title": format!("Portvakt: {}", source.title),
        "description": source.about,
        "tags": ["portvakt"],
        "timezone": "browser",
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": 38,
        "time": {"from": "now-6h", "to": "now"},
        "links": [{
            "type": "dashboards", "title": "Portvakt", "tags": ["portvakt"], "asDropdown": true, "icon": "external link",
            "includeVars": true, "keepTime": true, "targetBlank": false, "tooltip": "", "url": "",
        }],
        "templating": {"list": variables()},
        "panels": panels,
    })
}

/// Panels side by side, as many as have place.
fn lines(panels: &[Panel]) -> Vec<Vec<&Panel>> {
    let mut lines: Vec<Vec<&Panel>> = Vec::new();
    let mut width = COLUMNS;
    for panel in panels {
        width += panel.width;
        if width > COLUMNS {
            lines.push(Vec::new());
            width = panel.width;
        }
        lines.last_mut().unwrap().push(panel);
    }
    lines
}

/// The data source, and the labels that a reader can choose. The jobs of the chosen environments follow by themselves.
fn variables() -> Vec<Value> {
    let mut list = vec![json!({
        "type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
        "multi": false, "includeAll": false,
    })];
    for (name, label, query) in VARIABLES {
        // 2 hides a variable.
        let hide = if label.is_empty() { 2 } else { 0 };
        let mut variable = json!({
            "type": "query", "name": name, "label": label, "hide": hide, "datasource": data_source(),
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
            "multi": true, "includeAll": true,
            "current": {"text": ["All"], "value": ["$__all"], "selected": true},
        });
        // All jobs are those that the query finds, which depend on the environment. A value for All would replace them.
        if hide == 0 {
            variable["allValue"] = ".*".into();
        }
        list.push(variable);
    }
    list
}

/// Name, label and query of each variable. One without a label is hidden.
const VARIABLES: [(&str, &str, &str); 4] = [
    (
        "environment",
        "Environment",
        "label_values(portvakt_environment_info, environment)",
    ),
    (
        "job",
        "",
        "label_values(portvakt_environment_info{environment=~\"$environment\"}, job)",
    ),
    (
        "operation",
        "Operation",
        "label_values(portvakt_requests_total{job=~\"$job\"}, operation)",
    ),
    (
        "tpp",
        "TPP",
        "label_values(portvakt_tpp_requests_total{job=~\"$job\"}, tpp)",
    ),
];

/// A query, whose metrics are those of the chosen environment's jobs.
fn of_the_chosen(query: &str) -> String {
    let mut out = String::new();
    let mut rest = query.trim();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(word);
        rest = after;
        if super::is_metric(word) {
            out.push_str("{job=~\"$job\"");
            match rest.strip_prefix('{') {
                Some(labels) => {
                    out.push_str(", ");
                    rest = labels;
                }
                None => out.push('}'),
            }
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').map_or(quoted.len(), |end| end + 1);
            out.push('"');
            out.push_str(&quoted[..end]);
            rest = &quoted[end..];
        } else if let Some(c) = rest.chars().next() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn data_source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

impl Panel {
    fn model(&self, id: usize, place: &Value) -> Value {
        let steps = match self.limits {
            None => json!([{"color": "green", "value": null}]),
            Some([orange, red]) if orange <= red => json!([
                {"color": "green", "value": null},
                {"color": "orange", "value": orange},
                {"color": "red", "value": red},
            ]),
            // Lower values are worse.
            Some([orange, red]) => json!([
                {"color": "red", "value": null},
                {"color": "orange", "value": red},
                {"color": "green", "value": orange},
            ]),
        };
        let mut defaults = json!({
            "unit": self.unit,
            "thresholds": {"mode": "absolute", "steps": steps},
        });
        if let Some(max) = self.max {
            defaults["max"] = max.into();
        }
        if let Some(empty) = &self.empty {
            defaults["noValue"] = empty.as_str().into();
        }
        if !self.words.is_empty() {
            let words = self.words.iter().enumerate();
            let options: Map<_, _> = words
                .map(|(index, (value, text))| {
                    (value.clone(), json!({"index": index, "text": text}))
                })
                .collect();
            defaults["mappings"] = json!([{"type": "value", "options": options}]);
        }
        let options = match self.kind {
            Kind::Timeseries => {
                let stacking = if self.stack { "normal" } else { "none" };
                defaults["min"] = 0.into();
                // A replica has the same colour on every panel.
                defaults["color"] = json!({"mode": "palette-classic-by-name"});
                defaults["custom"] = json!({
                    "drawStyle": "line", "lineWidth": 1, "fillOpacity": if self.stack { 40 } else { 10 },
                    "showPoints": "never", "spanNulls": false, "stacking": {"mode": stacking, "group": "A"},
                });
                json!({
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                })
            }
            Kind::Stat => json!({
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
                "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "auto",
                "orientation": "auto",
            }),
            Kind::Table => {
                if self.limits.is_some() {
                    defaults["custom"] = json!({"cellOptions": {"type": "color-text"}});
                }
                json!({"showHeader": true, "cellHeight": "sm"})
            }
        };
        let mut model = json!({
            "id": id, "type": self.name_of_kind(), "title": self.title, "description": self.wrong,
            "datasource": data_source(), "gridPos": place,
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": options,
            "targets": self.targets(),
        });
        if self.kind == Kind::Table {
            // A line for each series of all queries: its legend, and its value.
            model["transformations"] =
                json!([{"id": "reduce", "options": {"reducers": ["lastNotNull"]}}]);
        }
        model
    }

    const fn name_of_kind(&self) -> &'static str {
        match self.kind {
            Kind::Timeseries => "timeseries",
            Kind::Stat => "stat",
            Kind::Table => "table",
        }
    }

    fn targets(&self) -> Vec<Value> {
        let is_table = self.kind == Kind::Table;
        let target = |(letter, (legend, query)): (char, (&String, &Value))| {
            json!({
                "refId": letter.to_string(), "datasource": data_source(), "expr": of_the_chosen(query.as_str().unwrap()),
                "legendFormat": legend, "editorMode": "code", "range": !is_table, "instant": is_table,
                "format": "time_series",
            })
        };
        ('A'..='Z').zip(&self.queries).map(target).collect()
    }
}
