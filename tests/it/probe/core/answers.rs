//! The operations of the core.

use super::{Asked, Core};
use serde_json::{Value, json};

const CONTACT: &str = "/v1/tpp/contact";

/// An error body.
pub(super) fn error(status: u16, code: &str) -> (u16, Value) {
    (status, json!({"code": code}))
}

impl Core {
    /// Status and body.
    pub(super) fn answer(&self, asked: &Asked) -> (u16, String) {
        let (status, body) = self.plain_answer(asked);
        (status, self.disguised(body))
    }

    fn plain_answer(&self, asked: &Asked) -> (u16, Value) {
        if self.has("largest-head") && asked.head_size > 8 * 1024 {
            return error(431, "BAD_REQUEST");
        }
        if self.has("largest-body") && asked.body.len() > 32 * 1024 {
            return error(413, "BAD_REQUEST");
        }
        let Some(claims) = self.verify(asked) else {
            return error(403, "FORBIDDEN");
        };
        let tpp = self.tpp(&claims, asked);
        let path = asked.target.split('?').next().unwrap();
        if let Some(answer) = self.payment(asked, path, &tpp, &self.psu(&claims, asked)) {
            return answer;
        }
        match (asked.method.as_str(), path) {
            ("GET", CONTACT) => match self.contacts.lock().unwrap().get(&tpp) {
                Some(contact) => (200, contact.clone()),
                None => error(404, "RESOURCE_UNKNOWN"),
            },
            ("PUT", CONTACT) => {
                let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
                if !body["email"].is_string() {
                    return error(self.status_of_a_faulty_body(), "FORMAT_ERROR");
                }
                let mut contacts = self.contacts.lock().unwrap();
                contacts.insert(tpp, body.clone());
                (200, body)
            }
            ("GET", "/v1/agreements") => {
                let psu = self.psu(&claims, asked);
                let sca = self.fact("sca-header", &claims, asked, "gateway-sca");
                let roles = self.fact("roles-header", &claims, asked, "gateway-tpp-roles");
                (200, json!([psu, sca, roles]))
            }
            _ if self.has("status") => (600, json!({})),
            _ if self.has("knows-any-payment") => (200, json!({})),
            _ => error(404, "RESOURCE_UNKNOWN"),
        }
    }

    /// The status of the answer to a body of another form.
    pub(super) fn status_of_a_faulty_body(&self) -> u16 {
        match self.fault.as_str() {
            "no-failure" => 500,
            "accepts-any-body" => 200,
            _ => 400,
        }
    }
}
