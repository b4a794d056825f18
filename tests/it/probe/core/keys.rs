//! The keys of a core that believes more than the gateway's: the key that a token names, and the public key as a secret.

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use openssl::{
    bn::BigNumContext,
    ec::{EcGroup, EcKey, EcPoint, PointConversionForm},
    nid::Nid,
    pkey::PKey,
    x509::X509,
};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// A point as a public key in PEM.
pub(super) fn pem(point: &[u8]) -> Vec<u8> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let point = EcPoint::from_bytes(&group, point, &mut BigNumContext::new().unwrap()).unwrap();
    let key = EcKey::from_public_key(&group, &point).unwrap();
    PKey::from_ec_key(key).unwrap().public_key_to_pem().unwrap()
}

/// The point that the member of this name gives, in a core whose fault has that name.
pub(super) fn named(header: &Value, fault: &str) -> Option<Vec<u8>> {
    let member = header.get(fault)?;
    match fault {
        "jwk" => Some(point(member)),
        "x5c" => Some(of_certificate(member[0].as_str()?)),
        "jku" => {
            let keys = fetch(member.as_str()?);
            let keys = keys["keys"].as_array()?;
            Some(point(keys.iter().find(|key| key["kid"] == header["kid"])?))
        }
        _ => None,
    }
}

fn point(jwk: &Value) -> Vec<u8> {
    let coordinate = |name: &str| {
        let text = jwk[name].as_str().unwrap();
        BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
    };
    [vec![4], coordinate("x"), coordinate("y")].concat()
}

fn of_certificate(base64: &str) -> Vec<u8> {
    let certificate = X509::from_der(&BASE64_STANDARD.decode(base64).unwrap()).unwrap();
    let key = certificate.public_key().unwrap().ec_key().unwrap();
    let mut context = BigNumContext::new().unwrap();
    let form = PointConversionForm::UNCOMPRESSED;
    let point = key.public_key();
    point.to_bytes(key.group(), form, &mut context).unwrap()
}

fn fetch(url: &str) -> Value {
    let (authority, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}
