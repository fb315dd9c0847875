//! What the fake agent does.

use serde_json::{Value, json};

pub(crate) fn words(text: &str) -> Value {
    json!({"type": "assistantChunk", "promptId": null, "content": {"type": "text", "text": text}})
}

fn thought(text: &str) -> Value {
    json!({"type": "thinkingChunk", "promptId": null, "content": {"type": "text", "text": text}})
}

/// A text in chunks, as a model streams it.
fn pieces(text: &str) -> Vec<Value> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(7)
        .map(|piece| words(&piece.iter().collect::<String>()))
        .collect()
}

pub(crate) fn connected(daemon: bool) -> Vec<Value> {
    let locality = if daemon {
        json!({"where": "daemon", "preflight": [
            {"kind": "node_version", "status": "ok", "locality": "daemon", "error": null, "detail": {"version": "v22.19.0"}},
            {"kind": "auth", "status": "ok", "locality": "acp", "error": null, "detail": {"method": "openai"}},
            {"kind": "mcp_discovery", "status": "warning", "locality": "acp", "error": "one server did not answer", "detail": {"servers": 2}}]})
    } else {
        json!({"where": "child"})
    };
    vec![
        json!({"type": "connected", "sessionId": "session-1", "agent": "Qwen Code 0.24.4", "attached": daemon,
            "workspace": "/home/me/project", "locality": locality,
            "abilities": {"listSessions": true, "loadSessions": true, "renameSessions": daemon, "switchModels": true,
                "switchModes": true, "images": true, "shared": daemon, "reviewsWrites": !daemon}}),
        json!({"type": "models", "current": "coder-plus", "available": [
            {"id": "coder-plus", "name": "Coder Plus", "description": "The larger one", "contextLimit": 262_144},
            {"id": "coder-flash", "name": "Coder Flash", "description": "The quicker one", "contextLimit": 131_072},
            {"id": "broken", "name": "Broken", "description": null, "contextLimit": null}]}),
        json!({"type": "modes", "current": "default", "available": [
            {"id": "plan", "name": "Plan", "description": "Thinks, and changes nothing"},
            {"id": "default", "name": "Ask", "description": "Asks before it changes anything"},
            {"id": "auto-edit", "name": "Auto-edit", "description": "Edits files without asking"}]}),
        json!({"type": "commands", "skills": ["review"], "commands": [
            {"name": "compress", "description": "Makes the conversation shorter", "hint": null},
            {"name": "init", "description": "Looks at the project and writes down what it is", "hint": null},
            {"name": "memory", "description": "What is remembered", "hint": "show | add"}]}),
        json!({"type": "contextUsage", "used": 18_432, "size": 262_144}),
        json!({"type": "title", "title": "Retry with a deadline"}),
    ]
}

pub(crate) fn edit_call(status: &str) -> Value {
    json!({"id": "call-edit", "title": "Writing to src/retry.rs", "kind": "edit", "status": status, "toolName": "edit",
        "input": {"file_path": "/home/me/project/src/retry.rs"}, "output": null,
        "locations": [{"path": "/home/me/project/src/retry.rs", "line": 12}],
        "content": [{"type": "diff", "path": "/home/me/project/src/retry.rs", "oldText": OLD, "newText": NEW}]})
}

const OLD: &str = "/// How often and how long.\npub struct Policy {\n    pub attempts: u32,\n    pub first_wait: Duration,\n}\n\nimpl Policy {\n    pub fn none() -> Self {\n        Self { attempts: 1, first_wait: Duration::ZERO }\n    }\n}\n";
const NEW: &str = "/// How often and how long.\npub struct Policy {\n    pub attempts: u32,\n    pub first_wait: Duration,\n    /// Gives up after this time.\n    pub deadline: Duration,\n}\n\nimpl Policy {\n    pub fn none() -> Self {\n        Self { attempts: 1, first_wait: Duration::ZERO, deadline: Duration::MAX }\n    }\n}\n";

fn read_call(status: &str) -> Value {
    json!({"type": "toolCall", "promptId": null, "call": {"id": "call-read", "title": "src/retry.rs", "kind": "read", "status": status,
        "toolName": "read_file", "input": {"absolute_path": "/home/me/project/src/retry.rs"}, "output": "",
        "locations": [{"path": "/home/me/project/src/retry.rs", "line": null}],
        "content": [{"type": "content", "content": {"type": "text", "text": "pub struct Policy {\n    pub attempts: u32,\n}"}}]}})
}

fn run_call(status: &str, output: &str) -> Value {
    json!({"type": "toolCall", "promptId": null, "call": {"id": "call-run", "title": "cargo test -p retry", "kind": "execute", "status": status,
        "toolName": "run_shell_command", "input": {"command": "cargo test -p retry"}, "output": output, "locations": [], "content": []}})
}

fn approval() -> Value {
    json!({"type": "approvalOpened", "request": {"requestId": "ask-1", "promptId": null, "toolCall": edit_call("pending"), "questions": [],
        "options": [{"optionId": "proceed_once", "name": "Yes, allow once", "kind": "allow_once"},
            {"optionId": "proceed_always", "name": "Yes, allow always for edits", "kind": "allow_always"},
            {"optionId": "cancel", "name": "No, suggest changes", "kind": "reject_once"}]}})
}

fn question() -> Value {
    json!({"type": "approvalOpened", "request": {"requestId": "ask-2", "promptId": null,
        "toolCall": {"id": "call-ask", "title": "Asks two questions", "kind": "think", "status": "pending", "toolName": "ask_user_question",
            "input": null, "output": null, "locations": [], "content": []},
        "questions": [
            {"answerKey": "0", "question": "Which wait should it start with?", "header": "Wait", "multiple": false,
                "choices": [{"label": "100 ms", "description": "as it is now"}, {"label": "250 ms", "description": "kinder to the server"}]},
            {"answerKey": "1", "question": "What shall be written to the log?", "header": "Log", "multiple": true,
                "choices": [{"label": "each attempt", "description": ""}, {"label": "the outcome", "description": ""}]}],
        "options": [{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}, {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"}]}})
}

/// The events of a turn, the delay before each in milliseconds, and whether it then waits for the user.
pub(crate) fn turn(prompt: &str) -> (Vec<Value>, u64, bool) {
    match prompt.split_whitespace().next().unwrap_or_default() {
        "ask" => (
            vec![
                words("I would add a deadline:\n"),
                json!({"type": "toolCall", "promptId": null, "call": edit_call("pending")}),
                approval(),
            ],
            15,
            true,
        ),
        "question" => (vec![words("Two points are not clear.\n"), question()], 15, true),
        "hostile" => (pieces(HOSTILE), 2, false),
        "huge" => {
            let code = "    let number = compute(12); // and so on\n".repeat(40_000);
            (
                std::iter::once("```rust\n".to_owned())
                    .chain((0..100).map(|part| code[part * code.len() / 100..(part + 1) * code.len() / 100].to_owned()))
                    .chain(["\n```\nThat was long.".to_owned()])
                    .map(|piece| words(&piece))
                    .collect(),
                1,
                false,
            )
        }
        "slow" => (
            (0..2000).map(|number| words(&format!("{number} "))).collect(),
            30,
            false,
        ),
        "fail" => (
            vec![
                json!({"type": "turnEnded", "promptId": null, "end": {"outcome": "failed", "message": "The model is overloaded.", "code": "529"}}),
            ],
            5,
            true,
        ),
        _ => {
            let mut events = vec![
                thought("The user wants a deadline. I look at the policy first, "),
                thought("then at what calls it."),
                json!({"type": "plan", "entries": [
                    {"content": "Look at the policy", "priority": "high", "status": "completed"},
                    {"content": "Add a deadline", "priority": "high", "status": "in_progress"},
                    {"content": "Run the tests", "priority": "medium", "status": "pending"}]}),
                read_call("in_progress"),
                read_call("completed"),
            ];
            events.extend(pieces(SHOWCASE));
            events.push(run_call("in_progress", ""));
            events.push(run_call(
                "completed",
                "running 4 tests\n....\ntest result: \u{1b}[32mok\u{1b}[0m. 4 passed",
            ));
            events.push(words("All four tests pass."));
            events.push(json!({"type": "contextUsage", "used": 31_200, "size": 262_144}));
            events.push(json!({"type": "tokenUsage", "inputTokens": 31_200, "outputTokens": 412, "totalTokens": 31_612, "thoughtTokens": 60, "cachedReadTokens": 0}));
            events.push(json!({"type": "suggestion", "text": "Also write a test for the deadline"}));
            (events, 4, false)
        }
    }
}

/// Two pages of sessions; the second repeats the last of the first.
pub(crate) fn sessions(cursor: Option<&str>) -> Value {
    let session = |id: &str, name: Option<&str>, active: bool, clients: u64| {
        json!({"sessionId": id, "workspaceCwd": "/home/me/project", "displayName": name, "createdAt": "2026-01-11T08:00:00Z",
            "updatedAt": "2026-01-11T09:30:00Z", "hasActivePrompt": active, "clientCount": clients})
    };
    let unnamed = session("0d5c77aa-9f", None, false, 0);
    if cursor == Some("page-2") {
        return json!({"type": "sessions", "sessions": [unnamed, session("session-4", Some("First steps"), false, 0)]});
    }
    json!({"type": "sessions", "nextCursor": "page-2", "sessions": [session("session-1", Some("Retry with a deadline"), true, 1),
        session("session-2", Some("Why is the build slow?"), false, 0), unnamed]})
}

pub(crate) fn files(pattern: &str) -> Value {
    let word = pattern.trim_matches(|sign| sign == '*' || sign == '/').to_lowercase();
    let paths: Vec<&str> = [
        "src/retry.rs",
        "src/lib.rs",
        "src/fetch/robots.rs",
        "tests/retry.rs",
        "README.md",
        "docs/a file.md",
    ]
    .into_iter()
    .filter(|path| path.to_lowercase().contains(&word))
    .collect();
    json!({"type": "files", "paths": paths})
}

const SHOWCASE: &str = "The wait grows after each failure, but nothing ends it. I would give the policy a **deadline**:\n\n```rust\npub struct Policy {\n    pub attempts: u32,\n    pub first_wait: Duration,\n    /// Gives up after this time, however many attempts are left.\n    pub deadline: Duration,\n}\n```\n\n1. `retry` notes when it *began*.\n2. Before each wait it looks at what is left:\n   - more than the wait: it waits\n   - less: it gives up with the last error\n3. The default stays as it is.\n\n| | before | after |\n|---|---|---|\n| attempts | 5 | 5 |\n| longest time | no end | 30 s |\n\n> A deadline of zero means *do not retry*.\n\nSee [the notes on timers](https://doc.rust-lang.org/std/time/) for why `Instant` is right here.\n\n";

const HOSTILE: &str = "<script>document.title='taken'; alert(1)</script>\n\n<img src=x onerror=\"document.title='taken'\">\n\nAn <b>inline</b> tag, a [click me](javascript:alert(1)), [data](data:text/html,<script>alert(1)</script>), [file](file:///etc/passwd), [really](https://bank.example@evil.example/) and [fine](https://example.com/a?b=c).\n\n![spy](https://evil.example/pixel.png)\n\nif (level != \"user\u{202e} \u{2066}// Check if admin\u{2069} \u{2066}\") and zero\u{200b}width, but \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} is a family.\n\n```html\n<script>document.title='taken'</script>\n\u{202e}reversed\n```\n\nwww.example.com and <mailto:me@example.com> &lt;b&gt; &#x3C;script&#x3E;\n";
