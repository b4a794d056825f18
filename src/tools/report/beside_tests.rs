//! Reports with the own channel and SCAs, and the status page.

use super::*;
use serde_json::{Value, json};
use sha2::Digest;
use std::fs;

/// A folder with an access log of 1 and 3 October 2026, and what is written beside it.
struct Site {
    folder: tempfile::TempDir,
}

/// What a report wrote.
struct Written {
    result: Result<(), ReportFault>,
    out: String,
    notes: String,
}

impl Site {
    fn new() -> Self {
        let line = |time: &str, service: &str, status: u64| {
            json!({
                "time": time, "kind": "access", "service": service, "tpp": "PSDNO-FSA-1",
                "outcome": "forwarded", "status": status, "whole_us": 12_000,
            })
            .to_string()
        };
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let lines = [
            line("2026-10-01T10:00:00Z", "ais", 200),
            line("2026-10-01T11:00:00Z", "pis", 500),
            line("2026-10-03T10:00:00Z", "ais", 200),
        ];
        site.put("access.log", &lines.join("\n"));
        site.put(
            "own.csv",
            "date,availability_percent,mean_ms,requests,errors\n\
             2026-09-30,100,1,1,0\n\
             2026-10-01,99.95,182.5,48000,12\n",
        );
        // The midnights that end 1, 2 and 3 October.
        let series = |event: &str, first: &str| {
            let values = json!([
                [1_790_899_200, first],
                [1_790_985_600, "0"],
                [1_791_072_000, "1"]
            ]);
            json!({"metric": {"event": event}, "values": values})
        };
        let result = [
            series("started", "12.01"),
            series("completed", "6"),
            series("failed", "2"),
        ];
        let answer =
            json!({"status": "success", "data": {"resultType": "matrix", "result": result}});
        site.put("sca.json", &answer.to_string());
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The arguments with these files of the site.
    fn args(&self, own: bool, sca: bool, format: Form) -> ReportArgs {
        ReportArgs {
            files: vec![self.path("access.log")],
            from: None,
            to: None,
            format,
            own_channel: own.then(|| self.path("own.csv")),
            sca: sca.then(|| self.path("sca.json")),
            audit: Vec::new(),
            config: None,
            page: None,
            bank: None,
        }
    }

    /// Those of a status page with this bank.
    fn page(&self, own: bool, bank: &str) -> ReportArgs {
        ReportArgs {
            page: Some(self.path("page")),
            bank: Some(bank.to_owned()),
            ..self.args(own, false, Form::Csv)
        }
    }
}

fn written(args: &ReportArgs) -> Written {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let result = run(
        args,
        Timestamp::from_unix(1_790_899_200),
        &mut out,
        &mut notes,
    );
    Written {
        result,
        out: String::from_utf8(out).unwrap(),
        notes: String::from_utf8(notes).unwrap(),
    }
}

/// EBA/GL/2018/07, guideline 3: both channels stand side by side; days that a file lacks, and days beyond the report, are named.
#[test]
fn files_add_columns_and_members() {
    let site = Site::new();
    let csv = written(&site.args(true, true, Form::Csv));
    csv.result.unwrap();
    let rows: Vec<_> = csv.out.lines().collect();
    assert_eq!(rows.len(), 4);
    assert!(rows[0].ends_with(
        ",error_rate_percent,own_availability_percent,own_mean_ms,own_requests,own_errors,own_error_rate_percent,\
         sca_started,sca_completed,sca_failed"
    ));
    assert_eq!(
        rows[1],
        "2026-10-01,100.000,0,2,1,1,12.0,,1,50.0000,99.950,182.5,48000,12,0.0250,12,6,2"
    );
    assert_eq!(rows[2], "2026-10-02,100.000,0,0,0,0,,,0,0.0000,,,,,,0,0,0");
    assert_eq!(
        rows[3],
        "2026-10-03,100.000,0,1,1,0,12.0,,0,0.0000,,,,,,1,1,1"
    );
    let own = site.path("own.csv");
    let own = own.display();
    assert_eq!(
        csv.notes,
        format!(
            "{own} has no figures of 2026-10-02 to 2026-10-03\ndays in {own} that the report has not: 1\n"
        )
    );
    let json = written(&site.args(true, true, Form::Json)).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["own_availability_percent"], 99.95);
    assert_eq!(json[0]["own_error_rate_percent"], 0.025);
    assert_eq!(json[0]["sca_started"], 12);
    assert_eq!(json[1]["own_mean_ms"], Value::Null);
    assert_eq!(json[1]["sca_completed"], 0);
    let svg = written(&site.args(true, true, Form::Svg)).out;
    assert_eq!(svg.matches(">own channel</text>").count(), 3);
    assert!(svg.contains(">SCAs</text>") && !svg.contains("NaN"));
}

/// Without files, a report is as it was.
#[test]
fn without_files_nothing_is_added() {
    let site = Site::new();
    let csv = written(&site.args(false, false, Form::Csv));
    assert_eq!(csv.out.lines().next(), Some(table::COLUMNS));
    assert_eq!(csv.notes, "");
    let json = written(&site.args(false, false, Form::Json)).out;
    let svg = written(&site.args(false, false, Form::Svg)).out;
    assert!(!json.contains("own_") && !json.contains("sca_"));
    assert!(!svg.contains("own channel") && !svg.contains("SCAs"));
}

/// Each gap has its own text: a file lacks days at the beginning, in the middle and at the end.
#[test]
fn gaps_are_named_by_their_ends() {
    let site = Site::new();
    let args = ReportArgs {
        from: Some("2026-09-28".parse().unwrap()),
        to: Some("2026-10-04".parse().unwrap()),
        ..site.args(true, false, Form::Csv)
    };
    let own = site.path("own.csv");
    site.put(
        "own.csv",
        "date,availability_percent,mean_ms,requests,errors\n2026-09-30,100,,0,0\n2026-10-02,100,,0,0\n",
    );
    assert_eq!(
        written(&args).notes,
        format!(
            "{} has no figures of 2026-09-28 to 2026-09-29, 2026-10-01, 2026-10-03 to 2026-10-04\n",
            own.display()
        )
    );
}

#[test]
fn a_wrong_file_is_refused_with_all_its_faults() {
    let site = Site::new();
    let rows = "1.10.2026,100,1,1,0\n".repeat(22);
    let head = "date,availability_percent,mean_ms,requests,errors\n";
    site.put("own.csv", &format!("{head}{rows}"));
    let refused = written(&site.args(true, false, Form::Csv));
    assert!(matches!(refused.result, Err(ReportFault::Figures(_))));
    assert_eq!(refused.out, "");
    let notes: Vec<_> = refused.notes.lines().collect();
    let own = site.path("own.csv");
    let own = own.display();
    assert_eq!(notes.len(), 21);
    assert_eq!(
        notes[0],
        format!("{own}, line 2, date: write the day as 2026-10-31")
    );
    assert_eq!(notes[20], format!("further faults in {own}: 2"));
    site.put("sca.json", "[]");
    let refused = written(&site.args(false, true, Form::Csv));
    assert!(matches!(refused.result, Err(ReportFault::Figures(_))));
    fs::remove_file(site.path("sca.json")).unwrap();
    let refused = written(&site.args(false, true, Form::Csv));
    assert!(matches!(refused.result, Err(ReportFault::Input(_))));
}

#[test]
fn the_page_has_both_channels() {
    let site = Site::new();
    let page = written(&site.page(true, "Example Bank"));
    page.result.unwrap();
    assert_eq!(page.out, "");
    assert!(
        page.notes
            .ends_with("the page shows days without a request as available: 2026-10-02\n")
    );
    let html = site.text("page/index.html");
    for part in [
        "<html lang=\"en\">",
        "<h1>Availability of the PSD2 interface of Example Bank</h1>",
        "<caption>",
        "<th scope=\"col\">Own channel: availability, %</th>",
        "<tr><th scope=\"row\">2026-10-01</th><td>100.000</td><td>0</td><td>12.0</td><td>no figure</td><td>1</td><td>50.0000</td>\
         <td>99.950</td><td>182.5</td><td>12</td><td>0.0250</td></tr>",
        "<tr><th scope=\"row\">2026-10-02</th><td>100.000</td><td>0</td><td>no figure</td><td>no figure</td><td>0</td><td>0.0000</td>\
         <td>no figure</td><td>no figure</td><td>no figure</td><td>no figure</td></tr>",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    let status: Value = serde_json::from_str(&site.text("page/status.json")).unwrap();
    let expected = json!({
        "format": "portvakt-status", "version": 1, "bank": "Example Bank", "from": "2026-10-01", "to": "2026-10-03",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&status[name], value);
    }
    assert_eq!(status["days"].as_array().unwrap().len(), 3);
    assert_eq!(
        status["days"][0],
        json!({
            "date": "2026-10-01",
            "dedicated_interface": {
                "availability_percent": 100.0, "downtime_seconds": 0, "mean_ms_ais": 12.0, "mean_ms_pis": null,
                "errors": 1, "error_rate_percent": 50.0,
            },
            "own_channel": {
                "availability_percent": 99.95, "mean_ms": 182.5, "errors": 12, "error_rate_percent": 0.025,
            },
        })
    );
    assert_eq!(status["days"][1]["own_channel"], Value::Null);
    // The next page takes the place of this one, and has one channel.
    written(&site.page(false, "Example Bank")).result.unwrap();
    assert!(!site.text("page/index.html").contains("Own channel"));
    let status: Value = serde_json::from_str(&site.text("page/status.json")).unwrap();
    assert_eq!(status["days"][0]["own_channel"], Value::Null);
}

/// The page names the status of its own run, so that a reader knows files of two runs.
#[test]
fn the_page_names_the_status_of_its_run() {
    let site = Site::new();
    let named = |status: &str| {
        let hash = crate::hex::encode(&sha2::Sha256::digest(status));
        format!("<meta name=\"portvakt-status-sha256\" content=\"{hash}\">")
    };
    let pages = ["One Bank", "Other Bank"].map(|bank| {
        written(&site.page(true, bank)).result.unwrap();
        ["page/index.html", "page/status.json"].map(|file| site.text(file))
    });
    let [[html, status], [_, other]] = &pages;
    assert!(html.contains(&named(status)), "{html}");
    assert!(!html.contains(&named(other)), "{html}");
}

/// The page has no script and loads nothing, whatever the bank is called.
#[test]
fn the_page_is_escaped() {
    let site = Site::new();
    let name = "</title><script src='//x'>\"&";
    written(&site.page(true, name)).result.unwrap();
    let html = site.text("page/index.html");
    let shown = "&lt;/title&gt;&lt;script src=&#39;//x&#39;&gt;&quot;&amp;";
    assert_eq!(html.matches(shown).count(), 2);
    for part in [
        "<script", " src=\"", "<link", "<img", "url(", "@import", "style=",
    ] {
        assert!(!html.contains(part), "{part}");
    }
    let addresses = html.split("href=\"").skip(1);
    let addresses: Vec<_> = addresses
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(addresses, ["status.json"]);
    let status: Value = serde_json::from_str(&site.text("page/status.json")).unwrap();
    assert_eq!(status["bank"], name);
}

/// Neither the logs are read nor a file is written where another's file is in the place of the page.
#[test]
fn the_page_of_another_stays() {
    let site = Site::new();
    fs::create_dir(site.path("page")).unwrap();
    site.put("page/index.html", "<!DOCTYPE html><title>Our bank</title>");
    let refused = ReportArgs {
        files: vec![site.path("missing.log")],
        ..site.page(false, "Example Bank")
    };
    let refused = written(&refused);
    assert!(matches!(refused.result, Err(ReportFault::Foreign(_))));
    assert_eq!(fs::read_dir(site.path("page")).unwrap().count(), 1);
    assert!(site.text("page/index.html").contains("Our bank"));
}

/// Less than all is never shown as all.
#[test]
fn an_availability_is_rounded_down() {
    for (given, shown) in [
        (100.0, 100.0),
        (99.9999, 99.999),
        (99.999, 99.999),
        (99.95, 99.95),
        (0.0, 0.0),
    ] {
        let rounded = super::day::rounded_down(given);
        assert!((rounded - shown).abs() < 1e-9, "{given}: {rounded}");
    }
}
