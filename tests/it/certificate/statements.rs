//! QcStatements as CAs encode them, parsed strictly: CRT-3 to CRT-5.
//!
//! The parser refuses malformed statements: guessing their meaning could give a TPP a role that no CA certified.

use super::leaf;
use crate::harness::{
    Call, Gate, accepted,
    pki::{Extension, LeafSpec, QC_STATEMENTS, QcType, Role, der_oid, der_sequence, der_utf8},
    refused, world,
};

/// QcCompliance and QcType eseal.
fn seal() -> Vec<Vec<u8>> {
    let kind = der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6, 2])]);
    vec![
        der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 1])]),
        der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6]), kind]),
    ]
}

/// The OID of a role, and its name.
fn role(number: u64, name: &str) -> [Vec<u8>; 2] {
    [der_oid(&[0, 4, 0, 19495, 1, number]), der_utf8(name)]
}

/// A PSD2 statement with these bytes in place of the roles.
fn psd2(roles: Vec<u8>) -> Vec<u8> {
    let content = [roles, der_utf8("Finanstilsynet"), der_utf8("NO-FSA")];
    der_sequence(&[der_oid(&[0, 4, 0, 19495, 2]), der_sequence(&content)])
}

/// A PSD2 statement as ETSI TS 119 495 has it.
fn right(roles: &[[Vec<u8>; 2]]) -> Vec<u8> {
    let roles: Vec<_> = roles.iter().map(|role| der_sequence(role)).collect();
    psd2(der_sequence(&roles))
}

/// A leaf whose extension qcStatements holds exactly this.
fn saying(statements: Vec<u8>, call: Call) -> Call {
    let extension = Extension {
        oid: QC_STATEMENTS.to_vec(),
        critical: false,
        content: statements,
    };
    let spec = LeafSpec {
        qc_compliance: false,
        qc_type: None,
        roles: None,
        extra_extensions: vec![extension],
        ..world().leaf()
    };
    call.by(&world().issue(&spec))
}

/// A sealing certificate with this PSD2 statement.
fn stating(psd2: Vec<u8>, call: Call) -> Call {
    saying(der_sequence(&[seal(), vec![psd2]].concat()), call)
}

//= CRT-4 refused
#[test]
fn statements_that_are_nearly_right() {
    let gate = Gate::start();
    let good = || right(&[role(3, "PSP_AI")]);
    accepted(&gate, &stating(good(), Call::accounts()));
    let (ai, pi) = (role(3, "PSP_AI"), role(2, "PSP_PI"));
    let both = [ai.clone(), pi].concat();
    let bad = [
        ("roles in one SEQUENCE, without one of their own", {
            let statement = psd2(der_sequence(&both));
            der_sequence(&[seal(), vec![statement]].concat())
        }),
        ("roles in one SEQUENCE, as if they were one role", {
            let statement = psd2(der_sequence(&[der_sequence(&both)]));
            der_sequence(&[seal(), vec![statement]].concat())
        }),
        ("a single statement, without the SEQUENCE around", good()),
        ("a role without its name", {
            let statement = psd2(der_sequence(&[der_sequence(&ai[..1])]));
            der_sequence(&[seal(), vec![statement]].concat())
        }),
        ("something behind the authority", {
            let content = [
                der_sequence(&[der_sequence(&ai)]),
                der_utf8("Finanstilsynet"),
                der_utf8("NO-FSA"),
                der_utf8("NO-FSA"),
            ];
            let statement = der_sequence(&[der_oid(&[0, 4, 0, 19495, 2]), der_sequence(&content)]);
            der_sequence(&[seal(), vec![statement]].concat())
        }),
        ("two PSD2 statements", {
            let payments = right(&[role(2, "PSP_PI")]);
            der_sequence(&[seal(), vec![good(), payments]].concat())
        }),
        ("two statements of its type", {
            der_sequence(&[seal(), seal(), vec![good()]].concat())
        }),
        ("no statement of a PSD2 kind", der_sequence(&seal())),
    ];
    for (what, statements) in bad {
        println!("{what}");
        let call = saying(statements, Call::accounts());
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-not-psd2");
    }
    // This is not DER (CRT-1).
    let statements = der_sequence(&[seal(), vec![good()]].concat());
    let call = saying([statements, vec![0]].concat(), Call::accounts());
    refused(&gate, &call, 400, "FORMAT_ERROR", "certificate-malformed");
}

/// The OID determines the role. The name is for people, and CAs write various names.
//= CRT-5 accepted
//= CRT-5 refused
#[test]
fn the_oid_of_a_role_counts_and_not_its_name() {
    let gate = Gate::start();
    for name in ["PSP_AI", "Account Information", "PSP_PI", "psp_ai", ""] {
        let statement = || right(&[role(3, name)]);
        accepted(&gate, &stating(statement(), Call::accounts()));
        let call = stating(statement(), Call::payment());
        refused(&gate, &call, 403, "FORBIDDEN", "role-missing");
    }
    for call in [Call::payment(), Call::accounts()] {
        let call = stating(right(&[role(1, "PSP_PI")]), call);
        refused(&gate, &call, 403, "FORBIDDEN", "role-missing");
    }
}

/// PSP_CB and PSP_PA are roles of later editions of ETSI TS 119 495. The gateway ignores them.
//= CRT-5 accepted
//= CRT-5 refused
#[test]
fn roles_of_later_editions() {
    let gate = Gate::start();
    let (later, information) = ([role(5, "PSP_CB"), role(6, "PSP_PA")], role(3, "PSP_AI"));
    let with = right(&[later[0].clone(), information, later[1].clone()]);
    for passage in accepted(&gate, &stating(with, Call::accounts())) {
        let roles = passage.seen.header("gateway-tpp-roles");
        assert_eq!(roles, Some("PSP_AI,PSP_CB,PSP_PA"));
    }
    let call = stating(right(&later), Call::accounts());
    refused(&gate, &call, 403, "FORBIDDEN", "role-missing");
}

//= CRT-4 accepted
//= CRT-4 refused
#[test]
fn the_id_of_the_authority() {
    let gate = Gate::start();
    for good in ["NO-FSA", "FI-FINFSA", "DE-BAFIN"] {
        accepted(&gate, &leaf(|spec| spec.nca_id = good.into()));
    }
    for bad in [
        "Germany", "EU-NCA", "NO", "NO-", "-FSA", "NOR-FSA", "NO-F", "no-fsa", "NO_FSA", "N0-FSA",
        "NO-FSA-1", " ",
    ] {
        println!("{bad}");
        let call = leaf(|spec| spec.nca_id = bad.into());
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-not-psd2");
    }
}

/// Many TPPs sign with a QWAC. It is accepted like a QSealC; other types are refused.
//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn a_website_certificate_where_a_seal_is_expected() {
    let gate = Gate::start();
    let web = |roles: Option<Vec<Role>>| {
        leaf(|spec| {
            spec.qc_type = Some(QcType::Web);
            spec.roles = roles;
        })
    };
    accepted(&gate, &web(Some(vec![Role::AccountInformation])));
    for roles in [None, Some(Vec::new())] {
        refused(&gate, &web(roles), 403, "FORBIDDEN", "certificate-not-psd2");
    }
    let person = leaf(|spec| spec.qc_type = Some(QcType::Esign));
    refused(&gate, &person, 403, "FORBIDDEN", "certificate-wrong-type");
}
