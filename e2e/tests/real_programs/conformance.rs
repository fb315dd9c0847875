//! The applicable part of the official MCP conformance suite.
//!
//! Its other scenarios require tools, resources or prompts with certain names and fail for every server except their
//! example. `tools-call-simple-text` and `tools-call-error` pass for any server that refuses unknown tools, so they
//! prove nothing.

use std::process::Command;

use alongside_e2e::{AuthorizingProxy, Companion, Sandbox, node, npm_package};

/// The scenarios, with the checks that must succeed in each.
const SCENARIOS: [(&str, &[&str]); 6] = [
    ("server-initialize", &["server-initialize"]),
    ("ping", &["ping"]),
    ("tools-list", &["tools-list"]),
    ("logging-set-level", &["logging-set-level"]),
    ("server-sse-multiple-streams", &["server-accepts-multiple-post-streams"]),
    ("dns-rebinding-protection", &["localhost-host-rebinding-rejected"]),
];

/// The one check that must fail: it sends a loopback `Origin` and expects to be accepted. We refuse every `Origin`, as
/// the official companions do, because no agent sends one and every web page does.
const REFUSED_BY_POLICY: &str = "localhost-host-valid-accepted";

#[test]
fn applicable_conformance_scenarios_pass() {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    let proxy = AuthorizingProxy::start(companion.port, &companion.token());
    let program = npm_package("@modelcontextprotocol/conformance").join("dist/index.js");
    let mut report = Vec::new();
    for (scenario, checks) in SCENARIOS {
        let mut command = Command::new(node());
        command
            .arg(&program)
            .args(["server", "--url", &proxy.url(), "--scenario", scenario]);
        let output = command
            .current_dir(sandbox.path("tmp"))
            .output()
            .expect("start the conformance suite");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let results = results(&text);
        let succeeded = checks.iter().all(|&check| results.contains(&(check, "SUCCESS")));
        let mut failures = results.iter().filter(|(_, result)| *result == "FAILURE");
        if !succeeded || failures.any(|(check, _)| *check != REFUSED_BY_POLICY) {
            report.push(format!("{scenario}:\n{text}"));
        }
        if scenario == "dns-rebinding-protection" && !results.contains(&(REFUSED_BY_POLICY, "FAILURE")) {
            report.push(format!("{scenario}: an Origin was let in:\n{text}"));
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}

/// Each check and its result, from lines like `2026-01-01T00:00:00Z [ping] SUCCESS Server responds`, with color codes.
fn results(text: &str) -> Vec<(&str, &str)> {
    let result = |line: &str| {
        ["SUCCESS", "FAILURE", "WARNING", "INFO"]
            .into_iter()
            .find(|&result| line.contains(result))
    };
    let check = |line| -> Option<(&str, &str)> {
        let result = result(line)?;
        // The brackets in color codes have no space before them.
        let (_, rest) = line.split_once(" [")?;
        let (check, _) = rest.split_once(']')?;
        Some((check.trim(), result))
    };
    text.lines().filter_map(check).collect()
}
