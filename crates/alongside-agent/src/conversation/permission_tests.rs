//! Permission requests, decisions and votes.

use serde_json::json;

use super::*;

fn edit() -> PermissionRequest {
    let data = json!({
        "toolCall": {"toolCallId": "c", "kind": "edit", "title": "Writing to a"},
        "options": [
            {"optionId": "proceed_always", "name": "Allow All Edits", "kind": "allow_always"},
            {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
            {"optionId": "reject_once", "name": "No", "kind": "odd"},
            {"optionId": "never", "name": "Never", "kind": "reject_always"},
        ],
    });
    read_permission_request("r", Some("p"), &data).unwrap()
}

fn question(call: &Value) -> Option<PermissionRequest> {
    let options = json!([{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}]);
    read_permission_request("r", None, &json!({"toolCall": call, "options": options}))
}

#[test]
fn offered_option_is_sent() {
    let vote = Vote::new(&edit(), &PermissionDecision::select("proceed_once"));
    assert_eq!(
        vote.to_daemon(),
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}})
    );
    assert_eq!(vote.to_acp(), vote.to_daemon());
}

#[test]
fn missing_or_stale_option_is_cancelled() {
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    for id in ["", "cancel", "reject_once", "reject", "reject_always", "gone"] {
        let vote = Vote::new(&edit(), &PermissionDecision::select(id));
        assert_eq!(vote.to_daemon(), cancelled, "{id}");
    }
    assert_eq!(Vote::new(&edit(), &PermissionDecision::Cancel).to_daemon(), cancelled);
    assert_eq!(
        PermissionDecision::from_preference::<()>(Ok(None)),
        PermissionDecision::Cancel
    );
}

#[test]
fn failed_preference_cancels() {
    assert_eq!(
        PermissionDecision::from_preference(Err("broken")),
        PermissionDecision::Cancel
    );
    let decision = PermissionDecision::from_preference::<()>(Ok(Some("proceed_once")));
    assert_eq!(decision, PermissionDecision::select("proceed_once"));
}

#[test]
fn reject_always_is_sent_as_it_is() {
    let vote = Vote::new(&edit(), &PermissionDecision::select("never"));
    assert_eq!(vote.to_daemon()["outcome"]["optionId"], "never");
}

#[test]
fn rejection_reaches_an_acp_agent_as_its_option() {
    let vote = Vote::new(&edit(), &PermissionDecision::select("cancel"));
    assert_eq!(
        vote.to_acp(),
        json!({"outcome": {"outcome": "selected", "optionId": "cancel"}})
    );
    let vote = Vote::new(&edit(), &PermissionDecision::Cancel);
    assert_eq!(vote.to_acp(), json!({"outcome": {"outcome": "cancelled"}}));
}

#[test]
fn questions_are_recognized_in_real_requests() {
    let questions = json!([{"question": "Which color?", "header": "Color", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}]}]);
    let input = json!({"questions": questions});
    for call in [
        json!({"toolCallId": "c", "kind": "think", "rawInput": input, "_meta": {"toolName": "ask_user_question"}}),
        json!({"toolCallId": "c", "kind": "think", "_meta": {"qwenInteractionKind": "user_question", "qwenQuestions": questions}}),
        json!({"toolCallId": "c", "kind": "ask_user_question", "rawInput": input}),
    ] {
        let request = question(&call).unwrap();
        assert!(request.is_question(), "{call}");
        assert_eq!(request.questions[0].answer_key, "0");
        assert_eq!(request.questions[0].choices[1].label, "Blue");
    }
}

#[test]
fn ordinary_request_has_no_questions() {
    let input = json!({"questions": [{"question": "?"}]});
    let call = json!({"toolCallId": "c", "kind": "edit", "rawInput": input, "_meta": {"toolName": "write_file"}});
    let request = question(&call).unwrap();
    assert!(!request.is_question());
    let with_answers = PermissionDecision::Select {
        option_id: "proceed_once".to_owned(),
        answers: Answers::from([("0".to_owned(), "x".to_owned())]),
    };
    assert_eq!(Vote::new(&request, &with_answers).to_daemon().get("answers"), None);
}

#[test]
fn answers_travel_beside_the_outcome() {
    let call = json!({"toolCallId": "c", "kind": "think", "_meta": {"toolName": "ask_user_question"},
        "rawInput": {"questions": [{"question": "?"}]}});
    let decision = |id: &str| PermissionDecision::Select {
        option_id: id.to_owned(),
        answers: Answers::from([("0".to_owned(), "Blue".to_owned())]),
    };
    let request = question(&call).unwrap();
    assert_eq!(
        Vote::new(&request, &decision("proceed_once")).to_daemon(),
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "answers": {"0": "Blue"}})
    );
    for id in ["", "stale"] {
        assert_eq!(
            Vote::new(&request, &decision(id)).to_daemon(),
            json!({"outcome": {"outcome": "cancelled"}})
        );
    }
}

#[test]
fn incomplete_permission_request_is_dropped() {
    for data in [
        json!({"options": []}),
        json!({"toolCall": "x", "options": []}),
        json!({"toolCall": {}, "options": "x"}),
        json!({"toolCall": {}}),
        json!(null),
    ] {
        assert_eq!(read_permission_request("r", None, &data), None, "{data}");
    }
}

#[test]
fn open_request_is_read_from_session_status() {
    let permission = json!({"requestId": "r", "kind": "permission", "action": {"type": "edit", "title": "Writing to a",
        "content": [{"type": "diff", "path": "/w/a", "oldText": "", "newText": "x"}], "locations": [{"path": "/w/a"}],
        "input": {"file_path": "/w/a"}}, "options": [{"optionId": "proceed_once", "label": "Allow", "kind": "allow_once"}]});
    let request = read_pending_interaction(&permission).unwrap();
    assert_eq!(
        (request.tool_call.title.as_str(), request.tool_call.kind.as_str()),
        ("Writing to a", "edit")
    );
    assert_eq!(request.options[0].name, "Allow");
    assert!(!request.is_question());
    let question = json!({"requestId": "q", "kind": "user_question", "title": "Ask user 1 question",
        "questions": [{"question": "Which?", "answerKey": "k", "options": []}], "options": []});
    let request = read_pending_interaction(&question).unwrap();
    assert_eq!(request.questions[0].answer_key, "k");
}
