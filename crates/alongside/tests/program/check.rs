//! `alongside bridge --check`: what it says about plugins.

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::Sandbox;
#[cfg(unix)]
use crate::sandbox::wait_for;

#[test]
fn complete_plugin_passes_the_check() {
    let sandbox = Sandbox::new();
    let plugin = script(&sandbox, &model_plugin(""));
    let report = sandbox.json(&["bridge", "--check", "--json", "--", "sh", plugin.to_str().unwrap()]);
    let missing: Vec<&Value> = list(&report)
        .filter(|finding| finding["required"] == true && finding["fulfilled"] == false)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let words = sandbox.words(&["bridge", "--check", "--", "sh", plugin.to_str().unwrap()]);
    assert!(words.contains("ok        rejects a review"), "{words}");
}

#[test]
fn the_check_says_what_a_plugin_does_not_do() {
    let failing = |plugin: &str| -> Vec<String> {
        let sandbox = Sandbox::new();
        let plugin = script(&sandbox, plugin);
        let output = sandbox.output(&["bridge", "--check", "--json", "--", "sh", plugin.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        list(&report)
            .filter(|finding| finding["required"] == true && finding["fulfilled"] == false)
            .map(|finding| finding["rule"].as_str().unwrap().to_owned())
            .collect()
    };
    let silent = failing("exit 0");
    assert!(
        silent.iter().any(|rule| rule.starts_with("sends `hello` first")),
        "{silent:?}"
    );
    assert!(silent.iter().any(|rule| rule.starts_with("exits when")), "{silent:?}");
    let loses_carriage_returns = failing(&model_plugin("| sed 's/\\\\r//g'"));
    assert_eq!(
        loses_carriage_returns,
        ["preserves the byte order mark, line endings and a missing final newline"]
    );
    let counts_from_nought = failing(&model_plugin("").replace("\"character\":1", "\"character\":0"));
    assert_eq!(
        counts_from_nought,
        [
            "reports the cursor position, counting from 1",
            "sends no invalid requests"
        ]
    );
}

/// A wrapper may leave something behind that has its output.
#[cfg(unix)]
#[test]
fn the_check_ends_although_something_holds_the_output_of_the_plugin() {
    let mut leavers = vec!["sleep 60 &"];
    if cfg!(target_os = "linux") {
        // Out of reach: in a session of its own.
        leavers.push("setsid sleep 60 &");
    }
    for leaver in leavers {
        let sandbox = Sandbox::new();
        let plugin = script(&sandbox, &format!("{leaver}\n{}", model_plugin("")));
        let mut check = sandbox
            .command(&["bridge", "--check", "--", "sh", plugin.to_str().unwrap()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let status = wait_for("the check's end", || check.try_wait().unwrap());
        assert!(status.success(), "{leaver}: {status}");
    }
}

fn list(report: &Value) -> impl Iterator<Item = &Value> {
    report.as_array().unwrap().iter()
}

fn script(sandbox: &Sandbox, text: &str) -> PathBuf {
    let path: &Path = &sandbox.path("plugin.sh");
    fs::write(path, text).unwrap();
    path.to_owned()
}

/// A whole plugin, as small as it can be. `mangle` is a filter on the text that it accepts.
fn model_plugin(mangle: &str) -> String {
    r#"
say() { printf '%s\n' "$1"; }
say '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"name":"sh","watch":true}}'
say '{"jsonrpc":"2.0","method":"context/focus","params":{"path":"'"$ALONGSIDE_CHECK"'/open.txt","cursor":{"line":1,"character":1}}}'
while read -r line; do
  review=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),"path".*/\1/p')
  case $line in
    *review/opened*accept.txt*) accept=$review; say '{"jsonrpc":"2.0","id":2,"method":"review/get","params":{"review":'"$review"'}}' ;;
    *review/opened*reject.txt*) say '{"jsonrpc":"2.0","id":3,"method":"review/reject","params":{"review":'"$review"'}}' ;;
    *'"id":2,'*) draft=$(printf '%s' "$line" | sed 's/.*"draft":"\([^"]*\)".*/\1/' MANGLE)
      say '{"jsonrpc":"2.0","id":4,"method":"review/accept","params":{"review":'"$accept"',"content":"'"$draft"'"}}' ;;
  esac
done
"#
    .replace("MANGLE", mangle)
}
