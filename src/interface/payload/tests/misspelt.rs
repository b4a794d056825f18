//! ERR-10: a name that stands where a member is missing and looks like it.

use super::*;
use crate::operations::MemberKind;

/// What is said about the member that is missing where one has another name.
fn said(payment: &Value, members: &[Member], path: &str) -> String {
    let body = payment.to_string();
    let wrong = wrong_of(body.as_bytes(), Schema::CrossBorderPayment, members);
    let of = format!("{path}: missing");
    let found = wrong.into_iter().find(|text| text.starts_with(&of));
    found.unwrap_or_else(|| panic!("{path} is not missing"))
}

/// The payment whose member at a path with slashes has another name.
fn renamed(path: &str, name: &str) -> Value {
    let mut payment = payment();
    let (parent, old) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = match parent {
        "" => &mut payment,
        parent => payment.pointer_mut(&format!("/{parent}")).unwrap(),
    };
    let members = parent.as_object_mut().unwrap();
    let value = members.shift_remove(old).unwrap();
    members.insert(name.to_owned(), value);
    payment
}

#[test]
fn a_misspelt_name_is_named() {
    for (path, name) in [
        ("creditorName", "creditorNane"),
        ("instructedAmount/amount", "amout"),
        ("creditorAddress/country", "contry"),
    ] {
        let payment = renamed(path, name);
        let said = said(&payment, &[], &path.replace('/', "."));
        let member = path.rsplit('/').next().unwrap();
        let named = format!("; {name} stands there: write {member}");
        assert!(said.ends_with(&named), "{said}");
    }
}

#[test]
fn a_name_of_the_product_is_not_a_misspelt_one() {
    let payment = renamed("creditorName", "creditorNane");
    let own = [Member {
        name: "creditorNane".into(),
        required: false,
        kind: MemberKind::Boolean,
    }];
    let said = said(&payment, &own, "creditorName");
    assert!(!said.contains("stands there"), "{said}");
}

/// Nor are names that the interface has elsewhere, and those beyond the 64th.
#[test]
fn what_is_not_named() {
    let mut known = renamed("creditorName", "creditorNane");
    let members = known.as_object_mut().unwrap();
    members.shift_remove("creditorNane");
    let many = (0..64).map(|number| (format!("more{number}"), json!(1)));
    let mut last = known.clone();
    last.as_object_mut().unwrap().extend(many.clone().skip(11));
    last["creditorNane"] = json!("Muster");
    assert!(said(&last, &[], "creditorName").contains("stands there"));
    let mut late = known.clone();
    late.as_object_mut().unwrap().extend(many);
    late["creditorNane"] = json!("Muster");
    for payment in [known, late] {
        let said = said(&payment, &[], "creditorName");
        assert!(!said.contains("stands there"), "{said}");
    }
}
