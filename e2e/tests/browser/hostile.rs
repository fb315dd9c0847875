//! A proposal is only ever shown as text.

use alongside_e2e::{Companion, Sandbox};
use serde_json::{Value, json};

use crate::browser::{Scenario, report};
use crate::sdk_agent::SdkAgent;

const MARKUP: &str = "\
<script>window.hacked = 'script'</script>
<img src=x onerror=\"window.hacked = 'image'\">
<svg onload=\"window.hacked = 'svg'\"></svg>
<a href=\"javascript:window.hacked = 'link'\">click</a>
<iframe srcdoc=\"<script>parent.hacked = 'frame'</script>\"></iframe>
</span></div><style>* { display: none }</style>
access = \"user\u{202e} \u{2066}// only for admins\u{2069} \u{2066}\"
zero\u{200b}width and \u{1b}[31mred\u{1b}[0m
";

#[test]
fn hostile_change_is_text_and_long_line_stays_responsive() {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect_as(&companion, "<img src=x onerror=\"window.hacked='agent'\">\u{202e}");
    let odd = sandbox.file("<img src=x onerror=window.hacked='path'>\u{202e}txt.exe");
    let long = sandbox.write("long.min.js", "let a = 0;");
    let line = "let b=\"<script>window.hacked='long'</script>\";".repeat(5 * 1024 * 1024 / 46);
    let mut scenario = Scenario::start(&sandbox, &companion, "hostile", json!({"long": "/* first */ "}));
    scenario.wait_until("listening");
    agent.propose(&odd, MARKUP);
    scenario.resume();
    scenario.wait_until("markup");
    assert!(
        agent.accepted_text(&odd) == MARKUP,
        "the accepted text is not the proposal"
    );
    agent.propose(&long, &line);
    scenario.resume();
    scenario.wait_until("long");
    scenario.resume();
    // No dialog, no error, and no policy violation: the policy is only the second line of defense.
    let result = scenario.finish().without_complaints();
    let accepted = agent.accepted_text(&long);
    assert!(accepted == format!("/* first */ {line}"), "not the edited text");

    assert_eq!(result["hacked"], Value::Null);
    for name in ["markup", "long"] {
        assert_eq!(result[name]["elements"], 0, "{name} made elements");
        assert_eq!(result[name]["title"], "(1) alongside");
    }
    let markup = &result["markup"];
    let lines: Vec<&str> = MARKUP.split('\n').collect();
    assert_eq!(markup["lines"][0], lines[0], "shown verbatim");
    let marks = json!(["RLO", "LRI", "PDI", "LRI", "ZWSP", "ESC", "ESC"]);
    assert_eq!(markup["marks"], marks, "invisible characters are marked");
    for place in ["heading", "row", "agent"] {
        let text = markup[place].as_str().unwrap_or_default();
        assert!(text.contains("<img src=x"), "{place}: {text:?}");
        assert!(
            !text.contains('\u{202e}'),
            "{place} contains a directional character: {text:?}"
        );
    }
    report("5 MB on one line, in ms", &result["long"]["took"]);
}
