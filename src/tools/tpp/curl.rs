//! A signed request as a curl command that can be pasted into a POSIX shell.
//!
//! Invariant: shell and curl send exactly the signed request: the target is not normalised, the body is unchanged.
//! Deliberately without `-w`, `-i` and the like: the output format is the user's choice.

use super::SignedRequest;
use std::fmt::Write;
use std::path::Path;

impl SignedRequest {
    /// The curl command that sends this request to `base_url` (scheme and authority), trusting `cacert` if it is given.
    pub fn as_curl(&self, base_url: &str, cacert: Option<&Path>) -> String {
        let mut options = vec!["curl --path-as-is --globoff".to_owned()];
        options.push(match self.method.as_str() {
            // Without `--head`, curl would wait for a body.
            "HEAD" if self.body.is_none() => "--head".to_owned(),
            method => format!("-X {}", quoted(method)),
        });
        if let Some(cacert) = cacert {
            options.push(format!("--cacert {}", quoted(&cacert.to_string_lossy())));
        }
        options.extend(self.headers.iter().map(|(name, value)| header(name, value)));
        let (before, data) = self.body.as_deref().map(data).unwrap_or_default();
        if let Some(data) = data {
            // curl would add the content type of a form.
            if self.header("content-type").is_none() {
                options.push(format!("-H {}", quoted("Content-Type:")));
            }
            options.push(data);
        }
        let url = format!("{}{}", base_url.trim_end_matches('/'), self.target);
        options.push(quoted(&url));
        before + &options.join(" \\\n  ")
    }
}

/// curl needs `Name;` for an empty value: `Name:` would remove the header.
fn header(name: &str, value: &str) -> String {
    if value.trim().is_empty() {
        format!("-H {}", quoted(&format!("{name};")))
    } else {
        format!("-H {}", quoted(&format!("{name}: {value}")))
    }
}

/// The text before curl, and the option that names the body.
fn data(body: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(body) {
        // A leading @ would name a file, and a shell word cannot contain NUL: such bodies go through a pipe, like other binary
        // ones.
        Ok(text) if !text.starts_with('@') && !text.contains('\0') => (
            String::new(),
            Some(format!("--data-binary {}", quoted(text))),
        ),
        _ => {
            let mut piped = "printf '".to_owned();
            for byte in body {
                // Writing to a String never fails.
                let _ = write!(piped, "\\{byte:03o}");
            }
            piped.push_str("' | ");
            (piped, Some("--data-binary @-".to_owned()))
        }
    }
}

/// Quotes one word for a POSIX shell: inside single quotes, only the single quote is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> SignedRequest {
        SignedRequest {
            method: method.into(),
            target: "/v1/a?b=c&d=%20".into(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            body: body.map(<[u8]>::to_vec),
            signing_string: String::new(),
        }
    }

    /// The command as a real shell parses it: one line per argument, and the bytes of the pipe.
    fn arguments(command: &str) -> Vec<String> {
        let script =
            format!("curl() {{ for a in \"$@\"; do printf '%s\\036' \"$a\"; done; }}\n{command}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\u{1e}').map(str::to_owned).collect()
    }

    #[test]
    fn a_shell_parses_every_word_unchanged() {
        let body = "{\"a\": \"it's $HOME `id` \\\\ ! \n\"}".as_bytes();
        let headers = [
            ("Signature", r#"keyId="SN=1,CA=O=a\, b's",x"#),
            ("X-Empty", ""),
        ];
        let command = request("POST", &headers, Some(body))
            .as_curl("https://localhost:1/", Some(Path::new("a b.pem")));
        let expected = [
            "--path-as-is",
            "--globoff",
            "-X",
            "POST",
            "--cacert",
            "a b.pem",
            "-H",
            r#"Signature: keyId="SN=1,CA=O=a\, b's",x"#,
            "-H",
            "X-Empty;",
            "-H",
            "Content-Type:",
            "--data-binary",
            std::str::from_utf8(body).unwrap(),
            "https://localhost:1/v1/a?b=c&d=%20",
        ];
        assert_eq!(arguments(&command), expected);
    }

    #[test]
    fn a_binary_body_goes_through_a_pipe() {
        for body in [&b"@file"[..], b"\0\xff'%s\\n", b"@-"] {
            let command =
                request("POST", &[("Content-Type", "a/b")], Some(body)).as_curl("https://h", None);
            assert!(command.contains("--data-binary @-"), "{command}");
            assert!(!command.contains("Content-Type:'"), "{command}");
            let script = format!("curl() {{ cat; }}\n{command}");
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(output.stdout, body);
        }
    }

    #[test]
    fn methods_without_a_body() {
        let get = request("GET", &[], None).as_curl("https://h", None);
        assert_eq!(
            get,
            "curl --path-as-is --globoff \\\n  -X 'GET' \\\n  'https://h/v1/a?b=c&d=%20'"
        );
        let head = request("HEAD", &[], None).as_curl("https://h", None);
        assert!(head.contains("--head"));
        let empty = request("POST", &[], Some(b"")).as_curl("https://h", None);
        assert!(empty.contains("--data-binary ''"));
    }
}
