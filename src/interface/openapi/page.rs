//! The OpenAPI description as one HTML page, without a script, for TPP developers.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The page's stylesheet; its hash stands in the page's Content-Security-Policy.
const STYLE: &str = include_str!("page.css");

/// A description that callers get without a signature (`listener.description`).
#[derive(Clone, Debug)]
pub struct Document {
    /// The path.
    pub path: &'static str,
    /// The value of Content-Type.
    pub content_type: &'static str,
    /// The value of Content-Security-Policy.
    pub policy: HeaderValue,
    /// The content.
    pub body: Bytes,
}

/// The description as JSON and as a page.
pub fn documents(description: &Value) -> [Document; 2] {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    [
        Document {
            path: "/openapi.json",
            content_type: "application/json; charset=utf-8",
            policy: nothing.clone(),
            body: description.to_string().into(),
        },
        Document {
            path: "/docs",
            content_type: "text/html; charset=utf-8",
            // Unreachable: base64 is visible ASCII. Without the hash the page has no style.
            policy: HeaderValue::try_from(policy).unwrap_or(nothing),
            body: render(description).into(),
        },
    ]
}

/// Renders a description that [`describe`](super::describe) made.
fn render(description: &Value) -> String {
    let mut page = String::new();
    let title = escaped(text(description, "/info/title"));
    page.push_str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">");
    page.push_str(&format!(
        "<title>{title}</title><style>{STYLE}</style></head><body><header><h1>{title}</h1>"
    ));
    page.push_str("<p>For programs: <a href=\"/openapi.json\">openapi.json</a> (OpenAPI 3.1)</p></header><main>");
    paragraphs(&mut page, text(description, "/info/description"));
    let tags = entries(description, "/tags");
    contents(&mut page, description, tags);
    for tag in tags {
        let name = text(tag, "/name");
        page.push_str(&format!("<section><h2>{}</h2>", escaped(name)));
        paragraphs(&mut page, text(tag, "/description"));
        for (method, path, operation) in operations(description, name) {
            render_operation(&mut page, description, method, path, operation);
        }
        page.push_str("</section>");
    }
    page.push_str("</main></body></html>");
    page
}

/// The list of operations, with links.
fn contents(page: &mut String, description: &Value, tags: &[Value]) {
    page.push_str("<nav aria-label=\"Operations\"><ul>");
    for tag in tags {
        for (method, path, operation) in operations(description, text(tag, "/name")) {
            let id = escaped(text(operation, "/operationId"));
            let _ = write!(
                page,
                "<li><a href=\"#{id}\"><b>{method}</b> <code>{}</code></a></li>",
                escaped(path)
            );
        }
    }
    page.push_str("</ul></nav>");
}

/// The operations of a tag: method, path and description.
fn operations<'a>(
    description: &'a Value,
    tag: &'a str,
) -> impl Iterator<Item = (String, &'a str, &'a Value)> {
    let paths = members(description, "/paths");
    let all = paths.flat_map(|(path, item)| {
        let item = item.as_object().into_iter().flatten();
        item.map(move |(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    });
    all.filter(move |(_, _, operation)| text(operation, "/tags/0") == tag)
}

fn render_operation(
    page: &mut String,
    root: &Value,
    method: String,
    path: &str,
    operation: &Value,
) {
    let id = escaped(text(operation, "/operationId"));
    let _ = write!(
        page,
        "<article id=\"{id}\"><h3><b>{method}</b> <code>{}</code></h3>",
        escaped(path)
    );
    paragraphs(page, text(operation, "/description"));
    render_parameters(page, root, entries(operation, "/parameters"));
    if let Some(body) = operation.pointer("/requestBody/content/application~1json") {
        page.push_str("<h4>Body</h4>");
        example(page, body);
    }
    page.push_str("<h4>Answers</h4><dl>");
    for (status, answer) in members(operation, "/responses") {
        let answer = resolved(root, answer);
        let _ = write!(page, "<dt>{}</dt><dd>", escaped(status));
        paragraphs(page, text(answer, "/description"));
        if let Some(content) = answer.pointer("/content/application~1json") {
            example(page, content);
        }
        page.push_str("</dd>");
    }
    page.push_str("</dl></article>");
}

fn render_parameters(page: &mut String, root: &Value, parameters: &[Value]) {
    if parameters.is_empty() {
        return;
    }
    page.push_str("<table><thead><tr><th>Parameter</th><th>In</th><th>Required</th><th>Meaning</th></tr></thead><tbody>");
    for parameter in parameters {
        let parameter = resolved(root, parameter);
        let required = parameter.pointer("/required") == Some(&Value::Bool(true));
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(text(parameter, "/name")),
            escaped(text(parameter, "/in")),
            if required { "yes" } else { "no" },
            escaped(text(parameter, "/description")),
        );
    }
    page.push_str("</tbody></table>");
}

/// The name of a schema, and an example of it.
fn example(page: &mut String, content: &Value) {
    let name = text(content, "/schema/$ref").rsplit('/').next();
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        let _ = write!(page, "<p>Schema: <code>{}</code></p>", escaped(name));
    }
    if let Some(example) = content.pointer("/example") {
        let _ = write!(
            page,
            "<pre tabindex=\"0\">{}</pre>",
            escaped(&format!("{example:#}"))
        );
    }
}

/// The part that a reference names, or the value itself.
fn resolved<'a>(root: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value.pointer("/$ref").and_then(Value::as_str);
    let pointer = pointer.and_then(|reference| reference.strip_prefix('#'));
    pointer
        .and_then(|pointer| root.pointer(pointer))
        .unwrap_or(value)
}

/// Markdown's paragraphs, with its bold and code.
fn paragraphs(page: &mut String, markdown: &str) {
    for paragraph in markdown.split("\n\n").filter(|text| !text.is_empty()) {
        let mut html = escaped(paragraph);
        for (mark, tag) in [("**", "b"), ("`", "code")] {
            let parts: Vec<_> = html.split(mark).map(str::to_owned).collect();
            // An odd number of marks is no markup.
            if parts.len() % 2 == 1 {
                html = parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| match at % 2 {
                        0 => part.clone(),
                        _ => format!("<{tag}>{part}</{tag}>"),
                    })
                    .collect();
            }
        }
        let _ = write!(page, "<p>{html}</p>");
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer);
    found.and_then(Value::as_str).unwrap_or_default()
}

fn entries<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer);
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn members<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let found = value.pointer(pointer);
    found
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
}

/// The text as HTML that has no markup: in an element, or in an attribute between quotation marks.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
