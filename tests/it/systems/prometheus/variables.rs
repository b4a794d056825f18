//! The variables of a dashboard, as Grafana puts them into queries.

use super::server::Prometheus;
use serde_json::Value;

/// The variables, and what stands for them in a query.
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    /// Everything is chosen, but of the environments only one, if it is named. Grafana asks for the values of one variable after the
    /// other, with those before it in the query. All is the variable's own value for All, or else each of its values.
    pub(super) fn of(
        dashboard: &Value,
        environment: Option<&str>,
        prometheus: &Prometheus,
    ) -> Self {
        let mut chosen = Self(Vec::new());
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            let (name, query) = (&variable["name"], &variable["query"]["query"]);
            let (Some(name), Some(query)) = (name.as_str(), query.as_str()) else {
                continue;
            };
            let value = match (environment, variable["allValue"].as_str()) {
                (Some(environment), _) if name == "environment" => {
                    any_of(&[environment.to_owned()])
                }
                (_, Some(all)) => all.to_owned(),
                _ => any_of(&values(&chosen.fill(query), prometheus)),
            };
            chosen.0.push((format!("${name}"), value));
        }
        chosen
    }

    /// A query with the values.
    pub(super) fn fill(&self, query: &str) -> String {
        let values = self.0.iter();
        values.fold(query.to_owned(), |query, (name, value)| {
            query.replace(name, value)
        })
    }
}

/// The values of `label_values(SELECTOR, LABEL)`.
fn values(query: &str, prometheus: &Prometheus) -> Vec<String> {
    let inner = query.strip_prefix("label_values(").unwrap();
    let (selector, label) = inner.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
    prometheus.label_values(selector, label)
}

/// A regular expression in a string of PromQL that matches these values.
fn any_of(values: &[String]) -> String {
    let escaped = values.iter().map(|value| {
        let escape = |c: char| match c {
            c if "\\^$*+?.()|[]{}".contains(c) => format!("\\\\{c}"),
            c => c.to_string(),
        };
        value.chars().map(escape).collect::<String>()
    });
    let escaped: Vec<_> = escaped.collect();
    match &escaped[..] {
        [one] => one.clone(),
        several => format!("({})", several.join("|")),
    }
}
