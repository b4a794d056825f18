use super::*;
use axum::Router;
use axum::http::HeaderValue;
use axum::routing::get;
use portvakt::signing::{AssertionSettings, AssertionSigner};
use portvakt_base::clock::Timestamp;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NOW: Timestamp = Timestamp::from_unix(1_772_449_200);

/// A gateway's signer, and the listener that publishes its keys.
struct Gateway {
    signer: AssertionSigner,
    control: Control,
    asked: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Gateway {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = AssertionSettings {
            key: folder.path().join("assertion.key"),
            previous: None,
            audience: "core".into(),
        };
        let signer = settings.signer("portvakt").unwrap();
        let (keys, asked) = (signer.published().to_owned(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&asked);
        let publish = move || async move {
            counter.fetch_add(1, Ordering::Relaxed);
            keys
        };
        let router = Router::new().route("/.well-known/jwks.json", get(publish));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            signer,
            control: Control::new(&format!("http://{address}")),
            asked,
            _folder: folder,
        }
    }

    /// The headers of a request with an assertion for it.
    fn vouch(&self, request: &Request, id: &str) -> HeaderMap {
        let mut headers = request.headers.clone();
        let facts = json!({
            "method": request.method,
            "target": request.target,
            "body_sha256": hash(request.body),
            "headers_sha256": hash(&hashed_lines(&headers)),
            "gateway-tpp-id": "PSDNO-FSA-1",
        });
        let facts = facts.as_object().unwrap().clone();
        let token = self.signer.assert(id, facts, NOW).unwrap();
        headers.insert("gateway-assertion", HeaderValue::try_from(token).unwrap());
        headers
    }
}

#[derive(Clone)]
struct Request {
    method: &'static str,
    target: &'static str,
    headers: HeaderMap,
    body: &'static [u8],
}

fn request() -> Request {
    let mut headers = HeaderMap::new();
    headers.insert("signature", HeaderValue::from_static("keyId=\"a\""));
    headers.insert("x-psu-identity", HeaderValue::from_static("01010112345"));
    Request {
        method: "POST",
        target: "/v1/payments/p?a=b",
        headers,
        body: b"{}",
    }
}

async fn verify(
    assertions: &Assertions,
    gateway: &Gateway,
    request: &Request,
    headers: &HeaderMap,
) -> Result<Map<String, Value>, NotTheGateway> {
    let covered = Covered {
        method: request.method,
        target: request.target,
        headers,
        body: request.body,
    };
    assertions.verify(&covered, &gateway.control).await
}

fn assertions() -> (Assertions, Clock) {
    let clock = Clock::standing(NOW);
    (Assertions::new("portvakt", "core", clock.clone()), clock)
}

//= FWD-1 accepted
#[tokio::test]
async fn the_gateways_own_assertion_holds_once() {
    let gateway = Gateway::start().await;
    let (assertions, _) = assertions();
    let request = request();
    let headers = gateway.vouch(&request, "1");
    let claims = verify(&assertions, &gateway, &request, &headers)
        .await
        .unwrap();
    assert_eq!(claims["gateway-tpp-id"], "PSDNO-FSA-1");
    let again = verify(&assertions, &gateway, &request, &headers).await;
    assert_eq!(again, Err(NotTheGateway::Used));
    // A GET may be repeated.
    let read = Request {
        method: "GET",
        ..request
    };
    let headers = gateway.vouch(&read, "2");
    for _ in 0..2 {
        assert!(verify(&assertions, &gateway, &read, &headers).await.is_ok());
    }
    assert_eq!(gateway.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_was_made_for_another_request_opens_nothing() {
    let gateway = Gateway::start().await;
    let (assertions, _) = assertions();
    let good = request();
    let headers = gateway.vouch(&good, "1");
    let others = [
        Request {
            method: "PUT",
            ..good.clone()
        },
        Request {
            target: "/v1/payments/p?a=c",
            ..good.clone()
        },
        Request {
            body: b"{ }",
            ..good.clone()
        },
    ];
    for other in others {
        let verified = verify(&assertions, &gateway, &other, &headers).await;
        assert_eq!(verified, Err(NotTheGateway::AnotherRequest));
    }
    for (name, value) in [
        ("x-psu-identity", "01010112346"),
        ("psu-context", "PRIVATE"),
        ("signature", "b"),
    ] {
        let mut changed = headers.clone();
        changed.insert(name, HeaderValue::from_static(value));
        let verified = verify(&assertions, &gateway, &good, &changed).await;
        assert_eq!(verified, Err(NotTheGateway::AnotherRequest), "{name}");
    }
    // The assertion is still accepted for its own request.
    assert!(verify(&assertions, &gateway, &good, &headers).await.is_ok());
}

#[tokio::test]
async fn whoever_else_signs_is_not_believed() {
    let [gateway, stranger] = [Gateway::start().await, Gateway::start().await];
    let (assertions, clock) = assertions();
    let request = request();
    let verified =
        async |headers: &HeaderMap| verify(&assertions, &gateway, &request, headers).await;
    assert_eq!(
        verified(&request.headers).await,
        Err(NotTheGateway::Missing)
    );
    let good = gateway.vouch(&request, "1");
    let mut doubled = good.clone();
    doubled.append("gateway-assertion", good["gateway-assertion"].clone());
    assert_eq!(verified(&doubled).await, Err(NotTheGateway::Missing));
    assert_eq!(
        verified(&stranger.vouch(&request, "1")).await,
        Err(NotTheGateway::UnknownKey)
    );
    // Unsigned, and with another algorithm.
    let token = good["gateway-assertion"].to_str().unwrap().to_owned();
    let (signed, _) = token.rsplit_once('.').unwrap();
    let claims = signed.split_once('.').unwrap().1;
    let header =
        |alg: &str| BASE64_URL_SAFE_NO_PAD.encode(json!({"alg": alg, "kid": "a"}).to_string());
    let forged = [
        (format!("{signed}."), NotTheGateway::Signature),
        (
            format!("{}.{claims}.", header("none")),
            NotTheGateway::Malformed,
        ),
        (
            format!("{}.{claims}.AAAA", header("HS256")),
            NotTheGateway::Malformed,
        ),
        ("a.b".into(), NotTheGateway::Malformed),
        (token.replace('.', "!"), NotTheGateway::Malformed),
    ];
    for (token, expected) in forged {
        let mut headers = request.headers.clone();
        headers.insert("gateway-assertion", HeaderValue::try_from(token).unwrap());
        assert_eq!(verified(&headers).await, Err(expected));
    }
    // Early and late.
    for (seconds, good_then) in [(-6_i64, false), (64, true), (65, false)] {
        let at = i64::try_from(NOW.unix()).unwrap() + seconds;
        clock.set(Timestamp::from_unix(u64::try_from(at).unwrap()));
        let headers = gateway.vouch(&request, &seconds.to_string());
        assert_eq!(verified(&headers).await.is_ok(), good_then, "{seconds}");
    }
    clock.set(NOW);
    for (issuer, audience) in [("other", "core"), ("portvakt", "other")] {
        let assertions = Assertions::new(issuer, audience, clock.clone());
        let verified = verify(&assertions, &gateway, &request, &good).await;
        assert_eq!(verified, Err(NotTheGateway::Claims));
    }
    // The gateway is asked for keys once a minute at most, regardless of the number of requests.
    for _ in 0..5 {
        let _ = verified(&stranger.vouch(&request, "9")).await;
    }
    // Including the two verifiers above, which have no keys yet.
    assert!(gateway.asked.load(Ordering::Relaxed) <= 4);
}
