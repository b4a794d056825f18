#!/usr/bin/env python3
"""Compares the number of each panel with the truth: promtool evaluates the panels' own queries on series that are made up.

    python3 dashboards/truth.py [--panels]

With --panels it only says which panel has no truth, and which truth no panel; that needs no promtool.
Three replicas run for 40 minutes, and Prometheus does not reach a fourth. Half of the signatures of PSDNO-FSA-1 do not verify. The core takes
8 s for payments and 702 ms for accounts. One replica of three is not ready, and has the certificate and the CRL that end first, another
configuration and a clock that is behind; the clock of another one is ahead. A disk fills.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
NOW = 40 * 60  # promtool begins at 0
REPLICAS = "abc"
DAY = 86400

# Values of each replica, or of one after the other; None of one without the series.
GAUGES = {
    "portvakt_ready": [1, 1, 0],
    "portvakt_requests_in_flight": 5,
    "portvakt_upstream_in_flight": 4,
    "portvakt_open_connections": 30,
    "portvakt_read_ahead_bytes": 4096,
    "portvakt_upstream_idle_connections": 7,
    'portvakt_upstream_endpoint_up{upstream="core", endpoint="10.0.0.7:80"}': [1, 0, 1],
    'portvakt_upstream_endpoint_up{upstream="core", endpoint="10.0.0.8:80"}': 1,
    "portvakt_certificates_cached": 12,
    'portvakt_certificate_end_timestamp_seconds{of="listener"}': [NOW + 90 * DAY, NOW + 90 * DAY, NOW + 2 * DAY],
    'portvakt_certificate_end_timestamp_seconds{of="anchor"}': NOW + 3650 * DAY,
    'portvakt_tpp_certificate_end_timestamp_seconds{tpp="PSDNO-FSA-1", serial="a1"}': NOW + 9 * DAY,
    "portvakt_bundle_imported_timestamp_seconds": [NOW, NOW, NOW - DAY],
    "portvakt_bundle_next_update_timestamp_seconds": NOW + 5 * DAY,
    'portvakt_crl_next_update_timestamp_seconds{issuer="CA", from="file"}': [NOW + 7200, NOW + 7200, NOW - 60],
    'portvakt_crl_next_update_timestamp_seconds{issuer="Other", from="http://ca.example/crl"}': NOW + 100,
    'portvakt_expiring{of="listener"}': [0, 0, 1],
    'portvakt_expiring{of="crl"}': [0, 0, 2],
    'portvakt_expiring{of="anchor"}': 0,
    "portvakt_revocation_sources": 3,
    "portvakt_revocation_overdue_seconds": [0, 0, 60],
    "portvakt_revocation_max_overdue_seconds": 3600,
    'portvakt_register_identities{register="eba"}': 900,
    'portvakt_register_as_of_timestamp_seconds{register="eba"}': 1000,
    'portvakt_register_age_seconds{register="eba"}': 1400,
    'portvakt_register_max_age_seconds{register="eba"}': 7 * DAY,
    "portvakt_sessions": 700,
    'portvakt_event_consumer_waiting_seconds{consumer="token"}': [None, 120, 60],
    'portvakt_sca_token_seals{key="0000000a"}': 2**28,
    "portvakt_sca_token_seals_alert": 2**31,
    "portvakt_sca_token_seals_limit": 2**32,
    'portvakt_state_rows{table="psu"}': 1000,
    "portvakt_state_clock_stepped_back": 0,
    "portvakt_clock_behind_seconds": 0,
    'portvakt_not_ready{cause="sca"}': [0, 0, 1],
    'portvakt_not_ready{cause="audit"}': 0,
    'portvakt_write_fault{of="access_log", why="no_permission"}': [None, 1, None],
    'portvakt_write_fault{of="access_log", why="none"}': [0, None, 0],
    'portvakt_configuration_info{hash="h1", files="f1"}': [1, 1, None],
    'portvakt_configuration_info{hash="h2", files="f1"}': [None, None, 1],
    "portvakt_last_reload_successful": [1, 0, 1],
    "portvakt_last_reload_timestamp_seconds": 100,
    "portvakt_pending_restart": [0, 2, 0],
    "portvakt_configuration_timestamp_seconds": 50,
    'portvakt_checks_observed{proves="identity"}': 0,
    'portvakt_checks_observed{proves="other"}': 2,
    'portvakt_disk_size_bytes{folder="audit"}': 2**33,
    'portvakt_build_info{version="1.2", commit="c0ffee"}': 1,
    'portvakt_environment_info{environment="production"}': 1,
    "process_resident_memory_bytes": 2**28,
    "process_virtual_memory_bytes": 2**32,
    "process_open_fds": 50,
    "process_max_fds": 1000,
    "process_threads": 20,
    "process_start_time_seconds": 10,
}

# Events of each replica in a minute.
COUNTERS = {
    'portvakt_answers_total{group="accounts", fault="none"}': 54,
    'portvakt_answers_total{group="accounts", fault="core"}': 6,
    'portvakt_answers_total{group="accounts", fault="gateway"}': 0,
    'portvakt_answers_total{group="payments", fault="caller"}': 60,
    'portvakt_requests_total{operation="account-list", outcome="forwarded", status="2xx", fault="none"}': 54,
    'portvakt_requests_total{operation="account-list", outcome="failed", status="5xx", fault="core"}': 6,
    'portvakt_requests_total{operation="payment-create", outcome="refused", status="4xx", fault="caller"}': 60,
    'portvakt_refusals_total{reason="signature-mismatch", fault="caller"}': 60,
    'portvakt_refusals_total{reason="upstream-timeout", fault="core"}': 6,
    'portvakt_refusals_total{reason="state-unavailable", fault="gateway"}': 12,
    'portvakt_refusals_total{reason="request-replayed", fault="caller"}': 0,
    'portvakt_refusals_total{reason="certificate-expired", fault="caller"}': 0,
    'portvakt_operation_refusals_total{operation="payment-create", reason="signature-mismatch"}': 60,
    'portvakt_operation_refusals_total{operation="account-list", reason="upstream-timeout"}': 6,
    'portvakt_check_seconds_sum{check="signature"}': 0.006,
    'portvakt_check_seconds_count{check="signature"}': 60,
    'portvakt_tolerated_total{fault="roles-empty"}': 0,
    'portvakt_observed_total{check="replay"}': 6,
    'portvakt_accept_fix_total{fix="longer-names"}': 6,
    'portvakt_tpp_requests_total{tpp="PSDNO-FSA-1"}': 60,
    'portvakt_tpp_requests_total{tpp="PSDNO-FSA-2"}': 60,
    'portvakt_tpp_requests_total{tpp="other"}': 0,
    'portvakt_tpp_refusals_total{tpp="PSDNO-FSA-1"}': 0,
    'portvakt_tpp_refusals_total{tpp="PSDNO-FSA-2"}': 6,
    'portvakt_tpp_refusals_total{tpp="other"}': 0,
    'portvakt_tpp_signature_failures_total{tpp="PSDNO-FSA-1"}': 60,
    'portvakt_tpp_signature_failures_total{tpp="PSDNO-FSA-2"}': 0,
    'portvakt_tpp_signature_failures_total{tpp="other"}': 0,
    'portvakt_tpp_quota_exceeded_total{tpp="PSDNO-FSA-2"}': 6,
    'portvakt_unsigned_target_total{tpp="PSDNO-FSA-2"}': 6,
    'portvakt_psu_present_without_session_total{tpp="PSDNO-FSA-2"}': 6,
    'portvakt_handshakes_total{outcome="done", version="1.3"}': 6,
    "portvakt_connections_turned_away_total": 6,
    'portvakt_cut_total{cause="slow_head"}': 6,
    'portvakt_cut_total{cause="core_busy"}': 12,
    'portvakt_shed_total{who="request"}': 6,
    'portvakt_upstream_responses_total{group="accounts", status="2xx"}': 54,
    'portvakt_upstream_responses_total{group="accounts", status="5xx"}': 6,
    'portvakt_upstream_failures_total{kind="timeout"}': 6,
    'portvakt_upstream_connections_total{kind="reused"}': 60,
    "portvakt_upstream_ejections_total": 0,
    'portvakt_upstream_endpoint_failures_total{upstream="core", endpoint="10.0.0.7:80"}': 6,
    'portvakt_upstream_endpoint_seconds_sum{upstream="core", endpoint="10.0.0.7:80"}': 72,
    'portvakt_upstream_endpoint_seconds_count{upstream="core", endpoint="10.0.0.7:80"}': 60,
    'portvakt_inner_addresses_total{place="location", done="removed"}': 6,
    'portvakt_certificate_lookups_total{cache="none"}': 6,
    'portvakt_revocation_fetches_total{result="ok"}': 6,
    "portvakt_revocation_let_pass_total": 6,
    "portvakt_register_stale_passed_total": 6,
    'portvakt_tpp_registration_total{event="role_lost"}': 6,
    'portvakt_quota_calls_total{event="taken"}': 6,
    'portvakt_sca_total{event="started"}': 12,
    'portvakt_sca_total{event="completed"}': 6,
    'portvakt_psu_bound_elsewhere_total{by="bind"}': 6,
    'portvakt_event_polls_total{result="events"}': 6,
    "portvakt_state_batches_failed_total": 6,
    "portvakt_state_commits_unclear_total": 0,
    "portvakt_state_batch_changes_sum": 120,
    "portvakt_state_batch_changes_count": 60,
    "portvakt_clock_backward_steps_total": 0,
    'portvakt_reloads_total{result="taken"}': 6,
    'portvakt_access_lines_total{result="written"}': 120,
    'portvakt_event_lines_total{result="written"}': 6,
    'portvakt_trace_spans_total{result="written"}': 30,
    'portvakt_upgrades_total{result="failed"}': 0,
    'portvakt_audit_records_total{result="written"}': 6,
    'portvakt_hsm_errors_total{purpose="listener", cause="busy"}': 6,
    "process_cpu_seconds_total": 30,
}

# Seconds, and how often each replica observes them in a minute.
HISTOGRAMS = {
    'portvakt_request_seconds{group="accounts"}': (0.702, 120),
    'portvakt_request_seconds{group="payments"}': (8, 80),
    'portvakt_upstream_seconds{group="accounts"}': (0.702, 120),
    'portvakt_upstream_seconds{group="payments"}': (8, 80),
    "portvakt_state_batch_seconds": (0.2, 60),
    'portvakt_hsm_sign_seconds{purpose="listener"}': (0.05, 60),
    'portvakt_caller_clock_skew_seconds{direction="behind"}': (0, 100),
    'portvakt_caller_clock_skew_seconds{direction="ahead"}': (0, 0),
}

# The first value and the change in a minute of each replica.
DISK = 2**31, -300_000
SLOPES = {
    "portvakt_clock_timestamp_seconds": [(0, 60), (20, 60), (-40, 60)],
    'portvakt_disk_free_bytes{folder="audit"}': [DISK] * 3,
}
FREE = DISK[0] + DISK[1] * NOW / 60
FULL_IN = FREE * 60 / -DISK[1]


def each(value):
    return dict.fromkeys(REPLICAS, value)


OFF = {"ahead, a": 0, "ahead, b": 20, "ahead, c": 0, "behind, a": 0, "behind, b": 0, "behind, c": 40}

# The number of each series, by its legend. A rate is that of three replicas in a second.
TRUTH = {
    "overview": {
        "Replicas that are ready": {"": 2 / 4},
        "Available": {"": 54 / 60},
        "Error budget left, 30 days": {"": 0},
        "Requests": {"": 6},
        "Slowest of a hundred": {"": 8},
        "Requests in flight": {"": 15},
        "Not ready or degraded": {"b, access_log-no_permission": 1, "c, sca": 1},
        "Refusals and failures by reason": {"signature-mismatch": 3, "upstream-timeout": 0.3, "state-unavailable": 0.6},
        "TPPs of whose requests most are refused": {"PSDNO-FSA-1": 0.5, "PSDNO-FSA-2": 0.1},
        "Slowest endpoints of the core": {"core, 10.0.0.7:80": 1.2},
        "Ends or is full soon": {"c, listener": 1, "c, crl": 2},
        "Ends first": {"CA": -60, "listener": 2 * DAY, "register": 7 * DAY - 1400, "anchor": 3650 * DAY},
        "Clocks, beside that of Prometheus": OFF,
        "Disks are full in": {f"{one}, audit": FULL_IN for one in REPLICAS},
        "Least room on a disk": {"": FREE / 2**33},
        "Refused before the TPP is known": {"": 2.7},
        "Configurations in use": {"a: h1 f1": 2, "b: h1 f1": 2, "c: h2 f1": 2},
        "Versions in use": {f"{one}: 1.2 c0ffee": 1 for one in REPLICAS},
        "Requests by outcome": {"forwarded": 2.7, "failed": 0.3, "refused": 3},
        "Requests by operation": {"account-list": 3, "payment-create": 3},
        "Answers by status": {"2xx": 2.7, "4xx": 3, "5xx": 0.3},
        "Failed requests, by who is at fault": {"core": 0.3},
        "Reasons of failures": {"upstream-timeout": 0.3, "state-unavailable": 0.6},
        "Burn of the error budget": {"5 minutes": 100, "1 hour": 100, "6 hours": 100},
        "Whole requests": {"median": 0.702, "99 %": 8},
        "Whole requests by group, 99 %": {"accounts": 0.702, "payments": 8},
        "The core": {"median": 0.702, "99 %": 8},
        "Time of checks": {"signature": 0.0001},
        "In flight": {"requests": 15, "at the core": 12},
        "Open connections": each(30),
        "CPU": each(0.5),
    },
    "decisions": {
        "By reason": {"signature-mismatch": 3, "reasons not shown": 0},
        "By operation": {"payment-create": 3},
        "By operation and reason": {"payment-create, signature-mismatch": 3, "account-list, upstream-timeout": 0.3},
        "By TPP": {"PSDNO-FSA-1": 0, "PSDNO-FSA-2": 0.3, "other": 0, "TPPs not shown": 0, "before verification": 2.7},
        "Observed, not refused": {"replay": 0.3},
        "Checks that are only observed": {"identity": 0, "other": 2},
        "Requests by TPP": {"PSDNO-FSA-1": 3, "PSDNO-FSA-2": 3, "other": 0},
        "Share that is refused": {"PSDNO-FSA-1": 0.5, "PSDNO-FSA-2": 0.1},
        "Targets that are not signed": {"PSDNO-FSA-2": 0.3},
        "Failures by cause": {"signature-mismatch": 3},
        "Failures by TPP": {"PSDNO-FSA-1": 3, "PSDNO-FSA-2": 0, "other": 0, "before its check": 0},
        "Callers' clocks": {"behind": 0},
        "Calls without the PSU": {"taken": 0.3},
        "Quota exceeded, by TPP": {"PSDNO-FSA-2": 0.3},
        "PSU said to be present, without a session": {"PSDNO-FSA-2": 0.3},
        "From link to session": {"started": 0.6, "completed": 0.3},
        "Completed": {"": 0.5},
        "Sessions": {"": 700},
        "PSU-IDs bound to another TPP": {"bind": 0.3},
        "Oldest event that a consumer has not taken": {"token": 60},
        "Calls for events": {"events": 0.3},
        "Fixes that TPPs accept": {"longer-names": 0.3},
        "Tolerated faults of certificates": {"roles-empty": 0},
    },
    "trust": {
        "Gateway's certificates and anchors end in": {"listener": 2 * DAY, "anchor": 3650 * DAY},
        "TPPs' certificates that end first": {"PSDNO-FSA-1 a1": 9 * DAY},
        "Where verified certificates were found": {"none": 0.3},
        "Verified certificates in the cache": each(12),
        "Certificates that are refused": {},
        "Age of the bundle of anchors": {"age": DAY},
        "Next update of its lists": {"first": 5 * DAY},
        "Fetches of OCSP answers and CRLs": {"ok": 0.3},
        "Overdue, beside the limit": {"overdue a": 0, "overdue b": 0, "overdue c": 60, "limit": 3600},
        "Sources in use": each(3),
        "CRLs in files that end first": {"CA": -60},
        "Fetched CRLs that end first": {"Other http://ca.example/crl": 100},
        "Let pass with unknown status": each(0.1),
        "Age of each register, beside the limit": {**{f"age {one} eba": 1400 for one in REPLICAS}, "limit eba": 7 * DAY},
        "Identities": {f"{one} eba": 900 for one in REPLICAS},
        "Date of each register": {f"{one} eba": 1_000_000 for one in REPLICAS},
        "Let pass with an old register": each(0.1),
        "TPPs that are new, and those that lost a role": {"role_lost": 30},
    },
    "core": {
        "By status": {"2xx": 2.7, "5xx": 0.3},
        "5xx by group": {"accounts": 0.3},
        "Failures by kind": {"timeout": 0.3},
        "Median by group": {"accounts": 0.702, "payments": 8},
        "99 % by group": {"accounts": 0.702, "payments": 8},
        "Requests that the core has": each(4),
        "Answers that wait for callers": each(4096),
        "Connections, new and reused": {"reused": 3},
        "Idle connections in the pool": each(7),
        "Endpoints that get requests": {"core, 10.0.0.7:80": 0, "core, 10.0.0.8:80": 1},
        "Failed requests by endpoint": {"core, 10.0.0.7:80": 0.3},
        "Mean time by endpoint": {"core, 10.0.0.7:80": 1.2},
        "Ejections": each(0),
        "Held back from the core": {"core_busy": 0.6},
        "Internal addresses in answers": {"location, removed": 0.3},
    },
    "state-and-process": {
        "Not ready or degraded, by replica and cause": {"b, access_log-no_permission": 1, "c, sca": 1},
        "Last reload taken": {"": 0},
        "Keys that need a restart": {"": 2},
        "Reloads": {"taken": 0.3},
        "Configuration in use since": each(50_000),
        "Last reload": each(100_000),
        "Configuration and version of each replica": {
            f"{one} {hash} f1 1.2 c0ffee production": 1 for one, hash in zip(REPLICAS, ("h1", "h1", "h2"))
        },
        "Transactions, and failed ones": {"all": 3, "failed": 0.3, "unclear at first": 0, "requests refused": 0.6},
        "Time of a transaction": {"median": 0.2, "99 %": 0.2},
        "Changes in a transaction": each(2),
        "Rows": {"psu": 1000},
        "The clock": {**{f"behind the state, {one}": 0 for one in REPLICAS}, **OFF},
        "Steps of the clock": {f"{what} {one}": 0 for what in ("steps", "refusing") for one in REPLICAS},
        "TLS handshakes": {"done 1.3": 0.3},
        "Connections turned away": {**each(0.1), "overload, request": 0.3},
        "Ended by the gateway": {"slow_head": 0.3},
        "CPU": each(0.5),
        "Memory": each(2**28),
        "File descriptors": each(0.05),
        "Threads": each(20),
        "Started": each(10_000),
        "Upgrades": {"failed": 0},
        "Lines of the logs": {"access, written": 6, "events, written": 0.3, "spans, written": 1.5},
        "Records of the audit": {"written": 0.3},
        "Free on the disks, of their size": {f"{one}, audit": FREE / 2**33 for one in REPLICAS},
        "Free on the disks": {f"{one}, audit, {what}": value for one in REPLICAS for what, value in (("free", FREE), ("size", 2**33))},
        "Disks are full in": {f"{one}, audit": FULL_IN for one in REPLICAS},
        "Virtual memory": each(2**32),
        "Tokens sealed by a key": {"0000000a": 3 / 16, "rotate": 0.5},
        "Time of a signature of the HSM, 99 %": {"listener": 0.05},
        "Signatures that the HSM did not make": {"listener, busy": 0.3},
    },
}

# How far a quantile may be from the truth: a bucket of latencies has this width at most where these are, one of the state half of it more.
QUANTILE, OF_STATE = 0.15, 0.3
EXACT = 1e-6


def bounds(metric):
    """The bounds of a histogram's buckets, as the gateway has them."""
    page = (FOLDER / "../docs/metrics.md").read_text()
    return re.search(rf"\| `{metric}`, histogram: ([^|]*) \|", page)[1].split(", ")


def series(name, replica, suffix="", **labels):
    metric, _, own = name.partition("{")
    labels = [f'{key}="{value}"' for key, value in {"job": "portvakt", "instance": replica, **labels}.items()]
    return f"{metric}{suffix}{{{', '.join(labels + [own.rstrip('}')] if own else labels)}}}"


def inputs():
    count = NOW // 60
    for replica in (*REPLICAS, "d"):
        yield series("up", replica), f"{int(replica != 'd')}x{count}"
    for index, replica in enumerate(REPLICAS):
        for name, value in GAUGES.items():
            value = value[index] if isinstance(value, list) else value
            if value is not None:
                yield series(name, replica), f"{value}x{count}"
        for name, values in SLOPES.items():
            first, change = values[index]
            yield series(name, replica), f"{first}{change:+}x{count}"
        for name, each_minute in COUNTERS.items():
            yield series(name, replica), f"0+{each_minute}x{count}"
        for name, (seconds, each_minute) in HISTOGRAMS.items():
            for bound in (*bounds(name.partition("{")[0]), "+Inf"):
                below = each_minute if seconds <= float(bound) else 0
                yield series(name, replica, "_bucket", le=bound), f"0+{below}x{count}"
            yield series(name, replica, "_sum"), f"0+{seconds * each_minute}x{count}"
            yield series(name, replica, "_count"), f"0+{each_minute}x{count}"


def shown(template, panel):
    """The labels and the truth of the series that a legend is for."""
    pattern = "".join(f"(?P<{part[2:-2]}>[^, ]+)" if part.startswith("{{") else re.escape(part) for part in re.split(r"({{\w+}})", template))
    for legend, truth in panel.items():
        # The limit that a key is compared with is no key.
        is_fixed = legend == "rotate" != template
        if not is_fixed and (found := re.fullmatch(pattern, legend)):
            yield legend, found.groupdict(), truth


def cases(target, panel):
    """promtool's cases of a query: which series it has, and one by one whether the number is the truth."""
    expr = target["expr"].replace("$__rate_interval", "5m")
    expr = re.sub(r"\$(job|operation|tpp)", ".*", expr)
    names = re.findall(r"{{(\w+)}}", target["legendFormat"])
    by = f" by ({', '.join(names)})"
    all_shown = list(shown(target["legendFormat"], panel))
    text = lambda labels: "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
    counted = [{"labels": text(labels), "value": 1} for _, labels, _ in all_shown]
    yield {"expr": f"count{by} ({expr})", "eval_time": f"{NOW}s", "exp_samples": counted}
    near = EXACT
    if "histogram_quantile" in expr:
        near = OF_STATE if "state" in expr else QUANTILE
    for _, labels, truth in all_shown:
        value, off = f"max{by} ({expr})", max(abs(truth) * near, EXACT)
        wrong = f"({value} < {truth - off!r} or {value} > {truth + off!r} or {value} != {value})"
        for name, is_of in labels.items():
            wrong += f' and on ({name}) label_replace(vector(0), "{name}", "{is_of}", "", "")'
        yield {"expr": wrong, "eval_time": f"{NOW}s", "exp_samples": []}


def main():
    tests, faults = [], []
    for name, truths in TRUTH.items():
        dashboard = json.loads((FOLDER / f"{name}.json").read_text())
        panels = {panel["title"]: panel["targets"] for panel in dashboard["panels"] if panel["type"] != "row"}
        faults += [f"{name}: no panel or no truth: {title}" for title in panels.keys() ^ truths.keys()]
        for title in panels.keys() & truths.keys():
            matched = [legend for target in panels[title] for legend, _, _ in shown(target["legendFormat"], truths[title])]
            if sorted(matched) != sorted(truths[title]):
                faults.append(f"{name}: {title}: legends {matched}")
            tests += [case for target in panels[title] for case in cases(target, truths[title])]
    if faults:
        sys.exit("\n".join(faults))
    if sys.argv[1:] == ["--panels"]:
        return
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in inputs()],
        "promql_expr_test": tests,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "truth.yml"
        # JSON is YAML.
        file.write_text(json.dumps({"rule_files": [str(FOLDER / "rules.yml")], "evaluation_interval": "1m", "tests": [test]}))
        done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    print(f"{len(tests)} comparisons\n{done.stdout}{done.stderr}", end="")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
