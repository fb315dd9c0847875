//! What each agent writes to its hook, as recorded, and what it is answered.

use std::collections::BTreeMap;

use alongside_protocol::HookOutcome;
use serde_json::{Value, json};

use super::*;

/// Files in memory; paths are taken as they are.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, Vec<u8>>);

impl Memory {
    fn with(path: &str, text: &str) -> Self {
        Self::default().and(path, text)
    }

    fn and(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.into(), text.into());
        self
    }
}

impl Files for Memory {
    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        Ok(path.to_owned())
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(path).cloned())
    }
}

fn call(agent: HookAgent, stdin: &Value) -> Call {
    Call::parse(agent, stdin.to_string().as_bytes()).unwrap()
}

/// What is printed for a call after its decisions.
fn printed(call: &Call, files: &Memory, outcomes: &[HookOutcome]) -> Value {
    let plan = Plan::of(call, files).unwrap();
    let printed = plan.answer(call, outcomes, files).encode(call.agent, call.event);
    assert!(printed.is_ascii());
    serde_json::from_str(&printed).unwrap()
}

fn accepted(content: &str) -> HookOutcome {
    HookOutcome::Accepted {
        content: Some(content.into()),
    }
}

const UNCHANGED: HookOutcome = HookOutcome::Accepted { content: None };

fn rejected(reason: &str) -> HookOutcome {
    HookOutcome::Rejected {
        reason: Some(reason.into()),
    }
}

fn claude_edit() -> Call {
    call(
        HookAgent::Claude,
        &json!({
            "session_id": "aa18f908", "transcript_path": "/home/me/.claude/projects/x.jsonl", "cwd": "/w", "prompt_id": "p",
            "permission_mode": "acceptEdits", "effort": { "level": "medium" }, "hook_event_name": "PreToolUse",
            "tool_name": "Edit", "tool_use_id": "toolu_01",
            "tool_input": { "file_path": "/w/a.txt", "old_string": "two", "new_string": "TWO", "replace_all": false },
        }),
    )
}

#[test]
fn claude_is_answered_with_the_whole_input() {
    let files = Memory::with("/w/a.txt", "one\ntwo\nthree\n");
    let call = claude_edit();
    let plan = Plan::of(&call, &files).unwrap();
    assert_eq!(plan.changes()[0].proposed.as_deref(), Some("one\nTWO\nthree\n"));
    let output = |outcome| printed(&call, &files, &[outcome])["hookSpecificOutput"].clone();
    assert_eq!(
        output(UNCHANGED),
        json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow",
                "permissionDecisionReason": "The user accepted this change." })
    );
    let edited = output(accepted("one\n2 é€𝄞\nthree\n"));
    assert_eq!(edited["permissionDecision"], "allow");
    assert_eq!(
        edited["updatedInput"],
        json!({ "file_path": "/w/a.txt", "old_string": "two\n", "new_string": "2 é€𝄞\n", "replace_all": false })
    );
    let note = edited["additionalContext"].as_str().unwrap();
    assert!(
        note.contains("The user edited your change to /w/a.txt") && note.contains("+2 é€𝄞"),
        "{note}"
    );
    let denied = output(rejected("Shorter."));
    assert_eq!(denied["permissionDecision"], "deny");
    assert_eq!(
        denied["permissionDecisionReason"],
        "The user rejected this change: Shorter."
    );
    assert_eq!(
        output(accepted("one\ntwo\nthree\n"))["permissionDecision"],
        "deny",
        "no hunk"
    );
}

#[test]
fn write_is_rewritten_with_its_content() {
    for (agent, tool, path, content, event) in [
        (HookAgent::Claude, "Write", "file_path", "content", "PreToolUse"),
        (HookAgent::Gemini, "write_file", "file_path", "content", "BeforeTool"),
        (
            HookAgent::Qwen,
            "write_file",
            "file_path",
            "content",
            "PermissionRequest",
        ),
        (
            HookAgent::Opencode,
            "write",
            "filePath",
            "content",
            "tool.execute.before",
        ),
    ] {
        let stdin = json!({
            "session_id": "s", "cwd": "/w", "hook_event_name": event, "tool_name": tool,
            "tool_input": { path: "a.txt", content: "new\n", "kept": 1 },
        });
        let call = call(agent, &stdin);
        let files = Memory::default();
        let plan = Plan::of(&call, &files).unwrap();
        assert_eq!(&*plan.changes()[0].path, "/w/a.txt", "relative to the directory");
        let output = printed(&call, &files, &[accepted("better\n")]);
        let input = [
            "/hookSpecificOutput/updatedInput",
            "/hookSpecificOutput/tool_input",
            "/hookSpecificOutput/decision/updatedInput",
            "/tool_input",
        ]
        .iter()
        .find_map(|place| output.pointer(place));
        let expected = json!({ path: "a.txt", content: "better\n", "kept": 1 });
        assert_eq!(input, Some(&expected), "{agent:?}: {output}");
    }
}

#[test]
fn gemini_keeps_every_argument_and_denies_at_the_top_level() {
    let call = call(
        HookAgent::Gemini,
        &json!({
            "session_id": "s", "transcript_path": "", "cwd": "/w", "hook_event_name": "BeforeTool", "timestamp": "t",
            "tool_name": "replace",
            "tool_input": { "file_path": "a.txt", "old_string": "b", "new_string": "c", "instruction": "i", "expected_replacements": 2 },
        }),
    );
    let files = Memory::with("/w/a.txt", "b\nb\n");
    assert_eq!(printed(&call, &files, &[UNCHANGED]), json!({ "decision": "allow" }));
    assert_eq!(
        printed(&call, &files, &[accepted("c\nb\n")])["hookSpecificOutput"],
        json!({ "hookEventName": "BeforeTool", "tool_input": {
            "file_path": "a.txt", "old_string": "b\nb\n", "new_string": "c\nb\n", "instruction": "i", "expected_replacements": 1 } })
    );
    let denied = printed(&call, &files, &[rejected("No.")]);
    assert_eq!(
        (&denied["decision"], &denied["reason"]),
        (&json!("deny"), &json!("The user rejected this change: No."))
    );
}

#[test]
fn qwen_permission_is_rewritten_but_its_tool_hook_writes_and_denies() {
    let stdin = |event: &str| {
        json!({
            "session_id": "s", "cwd": "/w", "hook_event_name": event, "permission_mode": "yolo", "prompt_id": "p",
            "tool_name": "edit", "tool_input": { "file_path": "/w/a.txt", "old_string": "b", "new_string": "c" },
        })
    };
    let files = Memory::with("/w/a.txt", "b\n");
    let permission = call(HookAgent::Qwen, &stdin("PermissionRequest"));
    assert_eq!(
        printed(&permission, &files, &[accepted("d\n")])["hookSpecificOutput"],
        json!({ "hookEventName": "PermissionRequest", "decision": { "behavior": "allow", "updatedInput": {
            "file_path": "/w/a.txt", "old_string": "b\n", "new_string": "d\n" } } })
    );
    assert_eq!(
        printed(&permission, &files, &[rejected("No.")])["hookSpecificOutput"]["decision"],
        json!({ "behavior": "deny", "message": "The user rejected this change: No." })
    );
    let tool = call(HookAgent::Qwen, &stdin("PreToolUse"));
    let plan = Plan::of(&tool, &files).unwrap();
    let Answer::Write { path, text, sentence } = plan.answer(&tool, &[accepted("d\n")], &files) else {
        panic!("the call would be written as it is");
    };
    assert_eq!((path, &*text), (PathBuf::from("/w/a.txt"), "d\n"));
    assert!(sentence.contains("Do not repeat this call"), "{sentence}");
    let output = printed(&tool, &files, &[accepted("d\n")]);
    assert_eq!(output["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn copilot_has_names_of_its_own() {
    let call = call(
        HookAgent::Copilot,
        &json!({
            "sessionId": "s", "timestamp": 1, "cwd": "/w", "toolName": "edit",
            "toolArgs": { "path": "/w/a.txt", "old_str": "b", "new_str": "c" },
        }),
    );
    let files = Memory::with("/w/a.txt", "a\nb\n");
    let edited = printed(&call, &files, &[accepted("a\nd\n")]);
    assert_eq!(edited["permissionDecision"], "allow");
    assert_eq!(
        edited["modifiedArgs"],
        json!({ "path": "/w/a.txt", "old_str": "b\n", "new_str": "d\n" })
    );
    assert!(edited["additionalContext"].is_string());
    let denied = printed(&call, &files, &[rejected("No.")]);
    assert_eq!(denied["permissionDecision"], "deny");
}

#[test]
fn opencode_is_answered_for_its_plugin() {
    let call = call(
        HookAgent::Opencode,
        &json!({
            "session_id": "s", "call_id": "c", "cwd": "/w", "worktree": "/", "hook_event_name": "tool.execute.before",
            "tool_name": "edit", "tool_input": { "filePath": "a.txt", "oldString": "b", "newString": "c" },
        }),
    );
    let files = Memory::with("/w/a.txt", "b\n");
    assert_eq!(printed(&call, &files, &[UNCHANGED]), json!({ "decision": "allow" }));
    let edited = printed(&call, &files, &[accepted("d\n")]);
    assert_eq!(
        edited["tool_input"],
        json!({ "filePath": "a.txt", "oldString": "b\n", "newString": "d\n" })
    );
    assert!(edited["note"].is_string());
}

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: /w/new.txt\n+new\n*** Delete File: old.txt\n*** Update File: from.txt\n*** Move to: to.txt\n@@\n-x\n+y\n*** End Patch\n";

fn codex_patch() -> (Call, Memory) {
    let call = call(
        HookAgent::Codex,
        &json!({
            "session_id": "s", "turn_id": "t", "transcript_path": null, "cwd": "/w", "hook_event_name": "PreToolUse",
            "model": "m", "permission_mode": "default", "tool_name": "apply_patch", "tool_use_id": "u",
            "tool_input": { "command": PATCH },
        }),
    );
    let files = Memory::with("/w/a.txt", "one\ntwo\n")
        .and("/w/old.txt", "old\n")
        .and("/w/from.txt", "x\n");
    (call, files)
}

#[test]
fn codex_patch_is_reviewed_file_by_file() {
    let (call, files) = codex_patch();
    let plan = Plan::of(&call, &files).unwrap();
    let changes = plan.changes().into_iter();
    let changes: Vec<_> = changes
        .map(|change| (&*change.path, change.proposed.as_deref()))
        .collect();
    assert_eq!(
        changes,
        [
            ("/w/a.txt", Some("1\ntwo\n")),
            ("/w/new.txt", Some("new\n")),
            ("/w/old.txt", None),
            ("/w/to.txt", Some("y\n")),
            ("/w/from.txt", None),
        ]
    );
    let all = [UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED];
    let output = printed(&call, &files, &all)["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "allow");
    assert_eq!(output.get("updatedInput"), None, "the patch is applied as it is");
}

#[test]
fn codex_patch_is_rebuilt_from_what_was_accepted() {
    let (call, files) = codex_patch();
    let output = printed(
        &call,
        &files,
        &[
            accepted("1\n2\n"),
            rejected("No new files."),
            UNCHANGED,
            UNCHANGED,
            rejected("Keep it."),
        ],
    );
    let output = &output["hookSpecificOutput"];
    assert_eq!(
        output["updatedInput"]["command"],
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n-two\n+1\n+2\n*** Delete File: old.txt\n*** Add File: to.txt\n+y\n*** End Patch\n"
    );
    let note = output["additionalContext"].as_str().unwrap();
    for part in [
        "The user edited your change to a.txt",
        "/w/new.txt: The user rejected this change: No new files.",
        "from.txt: The user rejected this change: Keep it.",
    ] {
        assert!(note.contains(part), "{note}");
    }
    let output = printed(&call, &files, &[(); 5].map(|()| HookOutcome::Rejected { reason: None }));
    assert_eq!(output["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn change_during_the_review_is_not_overwritten() {
    let (call, files) = (claude_edit(), Memory::with("/w/a.txt", "one\ntwo\n"));
    let plan = Plan::of(&call, &files).unwrap();
    let changed = Memory::with("/w/a.txt", "zero\none\ntwo\n");
    let Answer::Deny(reason) = plan.answer(&call, &[UNCHANGED], &changed) else {
        panic!("the edit was reviewed for another text");
    };
    assert!(reason.contains("changed during the review"), "{reason}");
    let carried_over = plan.answer(&call, &[accepted("zero\none\nTWO\n")], &changed);
    assert!(
        matches!(carried_over, Answer::Allow { input: None, .. }),
        "the same edit leads to it"
    );
    let (call, files) = codex_patch();
    let plan = Plan::of(&call, &files).unwrap();
    let changed = Memory::with("/w/a.txt", "other\n");
    let answer = plan.answer(&call, &[(); 5].map(|()| UNCHANGED), &changed);
    assert!(matches!(answer, Answer::Deny(reason) if reason.contains("a.txt: The file changed")));
}

#[test]
fn call_that_cannot_be_shown_is_denied_or_asked_about() {
    let files = Memory::with("/w/a.txt", "other\n");
    let reason = Plan::of(&claude_edit(), &files).unwrap_err();
    assert!(reason.contains("not in the file exactly"), "{reason}");
    let mut notebook = claude_edit();
    notebook.tool = "NotebookEdit".into();
    assert_eq!(Plan::of(&notebook, &files), Ok(Plan::Opaque));
    let mut bash = claude_edit();
    bash.tool = "Bash".into();
    assert_eq!(Plan::of(&bash, &files), Ok(Plan::Nothing));
    let ask = Answer::Ask("Decide here.".into());
    let decisions = [
        (HookAgent::Claude, "\"permissionDecision\":\"ask\""),
        (HookAgent::Codex, "\"permissionDecision\":\"deny\""),
        (HookAgent::Gemini, "\"decision\":\"deny\""),
        (HookAgent::Copilot, "\"permissionDecision\":\"ask\""),
        (HookAgent::Opencode, "\"decision\":\"deny\""),
    ];
    for (agent, decision) in decisions {
        let printed = ask.encode(agent, Event::Tool);
        assert!(printed.contains(decision), "{printed}");
    }
    assert_eq!(
        ask.encode(HookAgent::Qwen, Event::Permission),
        "",
        "Qwen Code then asks itself"
    );
}

#[test]
fn unreadable_input_is_an_error() {
    for stdin in ["", "[]", "{}", "{\"cwd\":\"relative\"}"] {
        assert!(Call::parse(HookAgent::Claude, stdin.as_bytes()).is_err(), "{stdin}");
    }
}
