//! Edits as the real agents make them: the recorded shape of each one's messages, and who writes the file.

use std::fs;

use serde_json::{Value, json};

use super::Agent;

/// What a prompt asks for: `old` is replaced by `new`; without `old`, `new` is the whole text.
struct Edit<'a> {
    path: &'a str,
    old: Option<&'a str>,
    new: &'a str,
    /// The whole texts.
    before: Option<String>,
    after: String,
}

impl<'a> Edit<'a> {
    fn read(spec: &'a Value) -> Self {
        let path = spec["path"].as_str().unwrap();
        let (old, new) = (spec["old"].as_str(), spec["new"].as_str().unwrap());
        let before = fs::read_to_string(path).ok();
        let after = match (old, &before) {
            (Some(old), Some(before)) => before.replace(old, new),
            _ => new.to_owned(),
        };
        Self {
            path,
            old,
            new,
            before,
            after,
        }
    }

    fn whole(&self) -> Value {
        json!([{"type": "diff", "path": self.path, "oldText": self.before, "newText": self.after}])
    }

    fn fragment(&self) -> Value {
        json!([{"type": "diff", "path": self.path, "oldText": self.old, "newText": self.new}])
    }
}

impl Agent {
    /// `edit-as AGENT JSON`. Says what became of it, in the agent's place.
    pub(super) fn edit_as(&mut self, rest: &str) {
        let (agent, spec) = rest.split_once(' ').unwrap();
        let spec: Value = serde_json::from_str(spec).unwrap();
        let allowed = match agent {
            "codex" => self.patch_as_codex(&spec),
            _ => self.edit_one(agent, &Edit::read(&spec)),
        };
        self.say(if allowed { "changed" } else { "not allowed" });
    }

    fn edit_one(&mut self, agent: &str, edit: &Edit<'_>) -> bool {
        let path = edit.path;
        let locations = json!([{"path": path}]);
        let (allowed, writes_through_client) = match agent {
            "opencode" => {
                let call = json!({"toolCallId": "call_1", "status": "pending", "title": path, "kind": "edit",
                    "rawInput": {"filepath": path, "diff": "Index: …"}, "locations": locations, "content": edit.whole()});
                let options = [
                    ("once", "allow_once"),
                    ("always", "allow_always"),
                    ("reject", "reject_once"),
                ];
                (self.is_allowed(&call, &options, "once"), true)
            }
            "claude" => {
                let input = json!({"file_path": path, "old_string": edit.old, "new_string": edit.new});
                let call = json!({"toolCallId": "toolu_1", "title": format!("Edit `{path}`"), "kind": "edit",
                    "rawInput": input, "locations": locations, "content": edit.fragment()});
                let options = [
                    ("allow_always", "allow_always"),
                    ("allow", "allow_once"),
                    ("reject", "reject_once"),
                ];
                (self.is_allowed(&call, &options, "allow"), false)
            }
            "copilot" => {
                self.update(
                    &json!({"sessionUpdate": "tool_call", "toolCallId": "tooluse_1", "title": "Edit file",
                    "kind": "edit", "status": "pending", "rawInput": {"path": path}, "content": edit.fragment()}),
                );
                // Only the earlier message has the diff.
                let call = json!({"toolCallId": "tooluse_1", "title": "Edit file", "kind": "edit", "status": "pending",
                    "locations": locations, "rawInput": {"fileName": path, "diff": "\ndiff --git a/… b/…\n"}});
                let options = [
                    ("allow_once", "allow_once"),
                    ("allow_always", "allow_always"),
                    ("reject_once", "reject_once"),
                ];
                (self.is_allowed(&call, &options, "allow_once"), false)
            }
            "hermes" => {
                let call = json!({"toolCallId": "edit-approval-1", "title": format!("Approve edit: {path}"),
                    "kind": "edit", "status": "pending", "rawInput": {"tool": "write_file"}, "content": edit.whole()});
                let options = [("allow_once", "allow_once"), ("deny", "reject_once")];
                (self.is_allowed(&call, &options, "allow_once"), false)
            }
            other => panic!("{other}"),
        };
        if allowed && writes_through_client {
            // Its result is ignored.
            self.ask("fs/write_text_file", json!({"path": path, "content": edit.after}));
        }
        if allowed {
            fs::write(path, &edit.after).unwrap();
        }
        allowed
    }

    /// The changes are `{"add": text}`, `{"delete": true}` or `{"old", "new", "to"}`, by path.
    fn patch_as_codex(&mut self, spec: &Value) -> bool {
        let (mut content, mut changes) = (Vec::new(), json!({}));
        let files = spec.as_object().unwrap();
        for (path, change) in files {
            let before = fs::read_to_string(path).unwrap_or_default();
            if let Some(text) = change["add"].as_str() {
                content.push(json!({"type": "diff", "path": path, "newText": text}));
                changes[path] = json!({"type": "add", "content": text});
            } else if change["delete"] == true {
                content.push(json!({"type": "diff", "path": path, "oldText": before, "newText": ""}));
                changes[path] = json!({"type": "delete", "content": before});
            } else {
                let after = before.replace(change["old"].as_str().unwrap(), change["new"].as_str().unwrap());
                let shown = change["to"].as_str().unwrap_or(path);
                content.push(json!({"type": "diff", "path": shown, "oldText": before, "newText": after}));
                changes[path] = json!({"type": "update", "unified_diff": "…", "move_path": change["to"]});
            }
        }
        let call = json!({"toolCallId": "call_1", "title": "Edit files", "kind": "edit", "status": "pending",
            "rawInput": {"call_id": "call_1", "changes": changes}, "content": content});
        let mut first = call.clone();
        first["sessionUpdate"] = json!("tool_call");
        self.update(&first);
        let allowed = self.is_allowed(
            &call,
            &[("approved", "allow_once"), ("abort", "reject_once")],
            "approved",
        );
        for (diff, (path, change)) in content.iter().zip(files).filter(|_| allowed) {
            if change["delete"] == true || change["to"].is_string() {
                fs::remove_file(path).unwrap();
            }
            if change["delete"] != true {
                fs::write(diff["path"].as_str().unwrap(), diff["newText"].as_str().unwrap()).unwrap();
            }
        }
        // It takes a "no" as the end of the turn.
        self.cancelled |= !allowed;
        allowed
    }

    /// Asks for permission. `allow` is the only option that counts as a "yes" here.
    fn is_allowed(&mut self, call: &Value, options: &[(&str, &str)], allow: &str) -> bool {
        let option = |&(id, kind): &(&str, &str)| json!({"optionId": id, "name": id, "kind": kind});
        let options: Vec<Value> = options.iter().map(option).collect();
        let response = self.ask(
            "session/request_permission",
            json!({"toolCall": call, "options": options}),
        );
        let outcome = &response["result"]["outcome"];
        let chosen = outcome["optionId"].as_str().unwrap_or("cancelled");
        self.say(&format!("{chosen}: "));
        chosen == allow
    }
}
