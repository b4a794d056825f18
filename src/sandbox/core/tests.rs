mod payments;

use super::bank::tests::bank;
use super::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A core without a gateway, that trusts any caller, or none.
fn core(log: Option<&PathBuf>, trust: Trust) -> Core {
    let (bank, _) = bank();
    Core {
        journal: Journal::open(log).unwrap(),
        bank: Mutex::new(bank),
        control: Control::new("http://127.0.0.1:9"),
        endings: tokio::sync::Mutex::default(),
        forms: FormTokens::default(),
        accesses: FormTokens::default(),
        frames: Frames::default(),
        console: FormTokens::default(),
        trust,
    }
}

async fn exchange(core: Core, request: &[u8]) -> String {
    ask(Arc::new(core), request).await
}

async fn ask(core: Arc<Core>, request: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router(core).into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { axum::serve(listener, service).await });
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

//= SBX-10 accepted
#[test]
fn an_option_switches_the_known_issue_on() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        core: CoreArgs,
    }
    for (line, expected) in [(vec!["core"], false), (vec!["core", "--known-issue"], true)] {
        let line: Line = clap::Parser::try_parse_from(line).unwrap();
        let bank = open_bank(&line.core).unwrap();
        assert_eq!(bank.has_known_issue, expected);
    }
}

//= SBX-17 accepted
//= SBX-17 refused
#[test]
fn an_option_names_each_origin_that_may_frame_the_page() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        core: CoreArgs,
    }
    let read = |origins: &[&str]| {
        let options = origins
            .iter()
            .flat_map(|origin| ["--frame-origin", *origin]);
        let line: Result<Line, _> =
            clap::Parser::try_parse_from(["core"].into_iter().chain(options));
        line.map(|line| line.core.frame_origins.len())
    };
    assert_eq!(read(&[]).unwrap(), 0);
    let two = ["https://tpp.example", "https://other.example:8443"];
    assert_eq!(read(&two).unwrap(), 2);
    let refused = read(&["https://tpp.example/page"]).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("--frame-origin") && text.contains("no path"),
        "{text}"
    );
}

#[tokio::test]
async fn a_request_is_answered_and_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("core.jsonl");
    let request = b"GET /v1/sandbox/customers?a=%20 HTTP/1.1\r\n\
        Host: core\r\nPSU-ID: b\r\nGateway-Tpp-Id: a\r\nX-PSU-IDENTITY: 01010112345\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    let answer = exchange(core(Some(&log), Trust::Anyone), request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Ola Nordmann"));
    let line: Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(line["method"], "GET");
    assert_eq!(line["target"], "/v1/sandbox/customers?a=%20");
    assert_eq!(line["headers"][1], json!(["psu-id", "b"]));
    assert_eq!(line["headers"][2], json!(["gateway-tpp-id", "a"]));
    assert_eq!(
        line["headers"][3],
        json!(["x-psu-identity", "(withheld, 11 bytes)"])
    );
    assert_eq!(line["body_length"], 2);
    assert_eq!(
        line["body_sha256"],
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let mut request =
        b"POST /v1/consents HTTP/1.1\r\nHost: core\r\nConnection: close\r\nContent-Length: 65537\r\n\r\n".to_vec();
    request.resize(request.len() + 65_537, b'x');
    let answer = exchange(core(None, Trust::Anyone), &request).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn nobody_but_the_gateway_is_answered_and_the_bank_itself_on_its_own_channel() {
    let ask = async |line: &str, headers: &str| {
        let trust = Trust::Gateway(Assertions::new("portvakt", "core", Clock::System));
        let request =
            format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n");
        let answer = exchange(core(None, trust), request.as_bytes()).await;
        answer.get(9..12).unwrap_or_default().to_owned()
    };
    let local = "Host: localhost:8080\r\n";
    assert_eq!(ask("GET /v1/sandbox/customers", local).await, "403");
    assert_eq!(
        ask(
            "GET /v1/accounts",
            "Host: localhost\r\nGateway-Tpp-Id: a\r\n"
        )
        .await,
        "403"
    );
    assert_eq!(ask("POST /v1/sandbox/batch", local).await, "200");
    assert_eq!(
        ask("POST /v1/sandbox/payments/x/cancellation", local).await,
        "404"
    );
    // A page in a browser, a name that merely resolves to this machine, and a forwarded request.
    for headers in [
        "Host: localhost\r\nOrigin: https://thief.example\r\n",
        "Host: thief.example\r\n",
        "Host: localhost\r\nForwarded: for=192.0.2.1\r\n",
    ] {
        assert_eq!(
            ask("POST /v1/sandbox/batch", headers).await,
            "403",
            "{headers}"
        );
    }
}

//= SBX-2 accepted
#[tokio::test]
async fn the_console_shows_the_bank_and_runs_the_batch_once_for_each_press() {
    let core = Arc::new(core(None, Trust::Anyone));
    let get = "GET /console HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n";
    let shown = ask(Arc::clone(&core), get.as_bytes()).await;
    assert!(shown.starts_with("HTTP/1.1 200 OK\r\n"), "{shown}");
    for text in [
        "Ola Nordmann",
        "910000004",
        "Run it now",
        "2026-03-02 at 13:30:00",
    ] {
        assert!(shown.contains(text), "{text}");
    }
    let (_, rest) = shown.split_once("name=\"form\" value=\"").unwrap();
    let body = format!("form={}", rest.split('"').next().unwrap());
    let post = format!(
        "POST /console HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let pressed = ask(Arc::clone(&core), post.as_bytes()).await;
    assert!(pressed.contains("The batch has run."), "{pressed}");
    let again = ask(core, post.as_bytes()).await;
    assert!(
        again.contains("out of date") && !again.contains("has run"),
        "{again}"
    );
}

//= SBX-2 refused
#[tokio::test]
async fn the_console_is_for_this_machine() {
    let core = Arc::new(core(None, Trust::Anyone));
    for lines in [
        "Host: bank.example",
        "Host: localhost\r\nForwarded: for=192.0.2.7",
        "Host: localhost\r\nX-Forwarded-For: 192.0.2.7",
        "Host: localhost\r\nGateway-Tpp-Id: a",
    ] {
        let get = format!("GET /console HTTP/1.1\r\n{lines}\r\nConnection: close\r\n\r\n");
        let shown = ask(Arc::clone(&core), get.as_bytes()).await;
        assert!(shown.starts_with("HTTP/1.1 404"), "{shown}");
        assert!(!shown.contains("Nordmann"), "{shown}");
    }
}

//= ERR-7 accepted
#[tokio::test]
async fn what_a_browser_asks_is_not_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("core.jsonl");
    let core = Arc::new(core(Some(&log), Trust::Anyone));
    for target in [
        "/sca?request=secret",
        "/accesses",
        "/bank.css",
        "/bank.svg",
        "/console",
    ] {
        let get = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = ask(Arc::clone(&core), get.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
    }
    assert_eq!(std::fs::read_to_string(log).unwrap(), "");
}
