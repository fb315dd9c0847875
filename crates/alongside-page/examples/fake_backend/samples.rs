//! Sample changes, contexts and agents.

use serde_json::{Value, json};

pub(crate) struct Sample {
    pub(crate) path: String,
    pub(crate) session: &'static str,
    pub(crate) agent: &'static str,
    pub(crate) base: Option<String>,
    pub(crate) proposal: String,
    pub(crate) notes: Vec<String>,
    pub(crate) conflict: bool,
}

const GEMINI: (&str, &str) = ("9f2c", "Gemini CLI 0.61.0");
const QWEN: (&str, &str) = ("41d7", "Qwen Code 0.19.2");

fn sample(
    path: &str,
    (session, agent): (&'static str, &'static str),
    base: Option<String>,
    proposal: String,
) -> Sample {
    Sample {
        path: path.to_owned(),
        session,
        agent,
        base,
        proposal,
        notes: Vec::new(),
        conflict: false,
    }
}

pub(crate) fn make(name: &str) -> Option<Sample> {
    match name {
        "rust" => Some(sample(
            "/home/me/project/src/retry.rs",
            GEMINI,
            Some(RUST.to_owned()),
            rust_proposal(),
        )),
        "crlf" => {
            let base = "\u{feff}name: build\r\non: [push]\r\njobs:\r\n  build:\r\n    runs-on: windows-latest\r\n    steps:\r\n      - uses: actions/checkout\r\n      - run: cargo build\r\n";
            let proposal = base
                .replace("cargo build\r\n", "cargo build --release\n      - run: cargo test")
                .replace('\u{feff}', "");
            let mut sample = sample(
                "/home/me/project/.github/workflows/windows.yml",
                QWEN,
                Some(base.to_owned()),
                proposal,
            );
            sample.notes = vec![
                "The byte order mark at the beginning is removed.".to_owned(),
                "Line endings become mixed: 7 CRLF, 1 LF.".to_owned(),
                "The final newline was removed.".to_owned(),
            ];
            Some(sample)
        }
        "new" => Some(sample(
            "/home/me/project/scripts/release.py",
            GEMINI,
            None,
            PYTHON.to_owned(),
        )),
        "hostile" => {
            let base = "<h1>Hello</h1>\n<p>A page.</p>\n";
            let proposal = "<h1>Hello</h1>\n<script>document.title='taken'; alert(1)</script>\n<img src=x onerror=\"document.title='taken'\">\n<p>A page.</p>\nif (level != \"user\u{202e} \u{2066}// Check if admin\u{2069} \u{2066}\") {\n\u{0}\u{1b}[31mred\u{1b}[0m zero\u{200b}width and \u{ad}soft hyphen\n";
            Some(sample(
                "/home/me/project/<img src=x onerror=alert(1)>/in\u{202e}dex.html",
                QWEN,
                Some(base.to_owned()),
                proposal.to_owned(),
            ))
        }
        "conflict" => {
            let base = "# Settings\n\nport = 8080\nhost = \"127.0.0.1\"\n\n[log]\nlevel = \"info\"\n";
            let proposal =
                "# Settings\n\nport = 9090\nhost = \"127.0.0.1\"\n\n[log]\nlevel = \"debug\"\nfile = \"a.log\"\n";
            let mut sample = sample(
                "/home/me/project/settings.toml",
                GEMINI,
                Some(base.to_owned()),
                proposal.to_owned(),
            );
            sample.conflict = true;
            Some(sample)
        }
        "small" => Some(sample(
            "/home/me/project/README.md",
            QWEN,
            Some("# Project\n\nHello.\n".to_owned()),
            "# Project\n\nHello, world.\n".to_owned(),
        )),
        "long" => {
            let base = "x".repeat(100);
            let proposal = "{\"number\":12},".repeat(400_000);
            Some(sample("/home/me/project/data.json", QWEN, Some(base), proposal))
        }
        "large" => Some(large()),
        _ => None,
    }
}

/// 200,000 lines with 2,000 hunks.
fn large() -> Sample {
    let line = |number: usize| format!("    let value_{number} = compute(input[{number}], \"label {number}\");\n");
    let base: String = (0..200_000).map(line).collect();
    let proposal = (0..200_000)
        .map(|number| match number % 100 {
            50 if number % 300 == 50 => format!("{}    check(value_{number})?;\n", line(number)),
            50 if number % 300 == 150 => String::new(),
            50 => format!("    let value_{number} = compute_checked(input[{number}], \"label {number}\")?;\n"),
            _ => line(number),
        })
        .collect();
    sample("/home/me/project/src/generated.rs", GEMINI, Some(base), proposal)
}

pub(crate) fn context() -> Value {
    json!({"context": {"workspaceState": {"openFiles": [
        {"path": "/home/me/project/src/retry.rs", "timestamp": 1_763_240_000_000_u64, "isActive": true, "cursor": {"line": 14, "character": 9}, "selectedText": "pub fn retry"},
        {"path": "/home/me/project/Cargo.toml", "timestamp": 1_763_239_000_000_u64, "isActive": false}], "isTrusted": true}},
        "hidden": [{"path": "/home/me/project/.env", "reason": "matches the rule .env*"}, {"path": "/home/me/project/secrets/key.pem", "reason": "matches the rule *.pem"}]})
}

pub(crate) fn agents() -> Value {
    let since = crate::review::milliseconds_now();
    json!([{"name": GEMINI.1, "session": GEMINI.0, "listening": true, "since": since - 754_000},
           {"name": QWEN.1, "session": QWEN.0, "listening": false, "since": since - 61_000}])
}

pub(crate) fn doctor() -> Value {
    json!({"ok": false, "directory": "/home/me/project", "agents": [
        {"displayName": "Gemini CLI", "connects": true, "shows": "Neovim"},
        {"displayName": "Qwen Code", "connects": false, "reason": "The lock file names a process that is gone.",
         "hint": "Start the companion again, or run alongside doctor --fix."}]})
}

const PYTHON: &str = "#!/usr/bin/env python3\n\"\"\"Makes a release.\"\"\"\n\nimport subprocess\nimport sys\n\n\ndef main(version: str) -> int:\n    subprocess.run([\"git\", \"tag\", f\"v{version}\"], check=True)\n    return 0\n\n\nif __name__ == \"__main__\":\n    sys.exit(main(sys.argv[1]))\n";

const RUST: &str = include_str!("retry.rs.txt");

fn rust_proposal() -> String {
    RUST.replace("use std::time::Duration;", "use std::time::{Duration, Instant};\nuse tracing::debug;")
        .replace("pub attempts: u32,", "pub attempts: u32,\n    /// Gives up after this time, however many attempts are left.\n    pub deadline: Duration,")
        .replace("let mut wait = policy.first_wait;", "let started = Instant::now();\n    let mut wait = policy.first_wait.min(policy.deadline);")
        .replace("    // TODO: make this configurable\n    std::thread::sleep(wait);\n    wait *= 2;", "    debug!(attempt, ?wait, \"trying again\");\n            std::thread::sleep(wait);\n            wait = (wait * 2).min(MOST);")
        .replace("assert_eq!(tries, 3);", "assert_eq!(tries, 3, \"it stops at the first success\");")
}
