//! A form of an HTML page, filled in and submitted as a browser without scripts does it.
//!
//! Deliberately no HTML parser: it reads pages that write attributes in double quotes, as the stand-in core's does, and takes the
//! first form that there is.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// A form, before it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Where it goes, as the page says it: relative to the page's own address.
    pub(crate) action: String,
    inputs: Vec<Input>,
    /// Name and value of the first button.
    button: (String, String),
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Input {
    kind: String,
    name: String,
    value: String,
    checked: bool,
}

/// What a tag says besides its name.
type Attributes = Vec<(String, String)>;

impl Form {
    /// The first form of a page.
    pub(crate) fn read(html: &str) -> Option<Self> {
        let (_, rest) = html.split_once("<form")?;
        let (form, rest) = rest.split_once('>')?;
        let (content, _) = rest.split_once("</form>")?;
        let inputs = content.split("<input").skip(1).map(|rest| {
            let attributes = attributes(rest.split_once('>').map_or(rest, |(tag, _)| tag));
            let value = |name| get(&attributes, name).unwrap_or_default();
            Input {
                kind: value("type"),
                name: value("name"),
                value: value("value"),
                checked: get(&attributes, "checked").is_some(),
            }
        });
        let (_, button) = content.split_once("<button")?;
        let button = attributes(button.split_once('>')?.0);
        Some(Self {
            action: get(&attributes(form), "action")?,
            inputs: inputs.collect(),
            button: (get(&button, "name")?, get(&button, "value")?),
        })
    }

    /// Types text into the field of this name. Whether there is one.
    pub(crate) fn fill(&mut self, name: &str, text: &str) -> bool {
        let mut inputs = self.inputs.iter_mut();
        let found = inputs.find(|input| input.name == name && input.kind == "text");
        found.map(|input| input.value = text.to_owned()).is_some()
    }

    /// Ticks, or unticks, every box of this name. How many there are.
    pub(crate) fn tick(&mut self, name: &str, checked: bool) -> usize {
        let inputs = self.inputs.iter_mut();
        inputs
            .filter(|input| input.name == name && input.kind == "checkbox")
            .map(|input| input.checked = checked)
            .count()
    }

    /// Chooses the first of each group of radio buttons of which none is chosen.
    pub(crate) fn choose_first(&mut self) {
        let chosen = self.inputs.iter().filter(|input| input.checked);
        let mut known: Vec<_> = chosen.map(|input| input.name.clone()).collect();
        for input in self.inputs.iter_mut().filter(|input| input.kind == "radio") {
            if !known.contains(&input.name) {
                known.push(input.name.clone());
                input.checked = true;
            }
        }
    }

    /// Which boxes and buttons are ticked, by their values.
    #[cfg(test)]
    pub(crate) fn ticked(&self) -> Vec<&str> {
        let inputs = self.inputs.iter().filter(|input| input.checked);
        inputs.map(|input| input.value.as_str()).collect()
    }

    /// Chooses the radio button of this value.
    #[cfg(test)]
    pub(crate) fn choose(&mut self, value: &str) {
        for input in self.inputs.iter_mut().filter(|input| input.kind == "radio") {
            input.checked = input.value == value;
        }
    }

    /// The values of a name, ticked or not.
    #[cfg(test)]
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let inputs = self.inputs.iter().filter(|input| input.name == name);
        inputs.map(|input| input.value.as_str()).collect()
    }

    /// The body that pressing the first button sends, which goes on to the next page.
    pub(crate) fn go_on(&self) -> String {
        let (name, value) = &self.button;
        self.press((name, value))
    }

    /// The body that pressing a button sends: application/x-www-form-urlencoded.
    pub(crate) fn press(&self, button: (&str, &str)) -> String {
        let successful = self
            .inputs
            .iter()
            .filter(|input| input.checked || !matches!(input.kind.as_str(), "checkbox" | "radio"));
        let pairs = successful.map(|input| (input.name.as_str(), input.value.as_str()));
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        pairs
            .chain([button])
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect::<Vec<_>>()
            .join("&")
    }
}

fn get(attributes: &Attributes, name: &str) -> Option<String> {
    let found = attributes.iter().find(|(known, _)| known == name)?;
    Some(found.1.clone())
}

/// `name="value"` and lone names, separated by white space.
fn attributes(tag: &str) -> Attributes {
    let mut found = Attributes::new();
    let mut rest = tag.trim_start();
    while !rest.is_empty() {
        let end = rest
            .find(|letter: char| letter == '=' || letter.is_whitespace())
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let quoted = after
            .strip_prefix("=\"")
            .and_then(|after| after.split_once('"'));
        let (value, after) = quoted.unwrap_or(("", after.trim_start_matches('=')));
        found.push((name.to_owned(), unescaped(value)));
        rest = after.trim_start();
    }
    found
}

fn unescaped(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<p>a</p><form method="post" action="sca">
        <input type="hidden" name="request" value="a&amp;b&lt;">
        <input type="text" id="i" name="identity" value="" required autofocus>
        <input type="checkbox" name="account" value="1" checked><input type="checkbox" name="account" value="2">
        <button class="primary" type="submit" name="step" value="approve">A</button><button name="step" value="b">B</button>
        </form>"#;

    #[test]
    fn a_form_is_filled_in_and_submitted() {
        let mut form = Form::read(PAGE).unwrap();
        assert_eq!(form.action, "sca");
        assert!(form.fill("identity", "1") && !form.fill("request", "x"));
        let press = |form: &Form| form.press(("step", "approve"));
        let start = "request=a%26b%3C&identity=1&account=1";
        assert_eq!(press(&form), format!("{start}&step=approve"));
        assert_eq!(form.go_on(), press(&form));
        assert_eq!(form.tick("account", true), 2);
        assert_eq!(press(&form), format!("{start}&account=2&step=approve"));
        assert_eq!(form.tick("account", false), 2);
        assert_eq!(press(&form), "request=a%26b%3C&identity=1&step=approve");
    }

    #[test]
    fn one_radio_button_of_each_group_is_chosen() {
        let radio = |name, rest| format!("<input type=\"radio\" name=\"{name}\" value={rest}>");
        let radios = [
            radio("context", "\"1\""),
            radio("context", "\"2\""),
            radio("app", "\"3\""),
            radio("app", "\"4\" checked"),
        ];
        let button = "<button name=\"step\" value=\"go\">";
        let page = format!("<form action=\"sca\">{}{button}</form>", radios.concat());
        let mut form = Form::read(&page).unwrap();
        form.choose_first();
        assert_eq!(form.ticked(), ["1", "4"]);
        assert_eq!(form.go_on(), "context=1&app=4&step=go");
    }

    #[test]
    fn what_is_no_form_is_none() {
        for html in ["", "<form", "<form action=\"a\">", "<form>x</form>"] {
            assert_eq!(Form::read(html), None, "{html}");
        }
        assert!(!attributes("a = =\"").is_empty());
    }
}
