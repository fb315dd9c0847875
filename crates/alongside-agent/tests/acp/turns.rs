//! Prompts, approvals and switches.

use alongside_agent::OpenSession;
use alongside_agent::acp::{AcpError, AcpOptions};
use alongside_agent::conversation::{Answers, PermissionDecision, TurnEnd};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentReply};

use super::{answer, completed, connect, end, is_approval, is_end, options, prompt, said, until};

#[tokio::test]
async fn answer_arrives_in_order_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    let prompt_id = prompt(&manager, "count 500").await;
    let told = until(&mut events, is_end).await;
    let expected = (0..500)
        .map(|number| format!("word{number} "))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(said(&told), expected);
    assert_eq!(end(&told), &completed("end_turn"));
    assert_eq!(
        told[0],
        AgentEvent::PromptAccepted {
            prompt_id: prompt_id.clone(),
            text: "count 500".to_owned()
        }
    );
    assert_eq!(told[1], AgentEvent::TurnStarted { prompt_id });
}

#[tokio::test]
async fn prompt_during_a_turn_is_queued_and_removable() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "wait").await;
    let second = prompt(&manager, "say second").await;
    let third = prompt(&manager, "say third").await;
    for _ in 0..3 {
        prompt(&manager, "say more").await;
    }
    let too_many = manager
        .execute(AgentCommand::Prompt {
            blocks: vec!["say x".into()],
            id: None,
        })
        .await;
    assert!(matches!(too_many, Err(AgentError::Acp(AcpError::QueueFull(5)))));
    let remove = AgentCommand::RemoveQueued {
        prompt_id: second.clone(),
    };
    assert_eq!(manager.execute(remove.clone()).await.unwrap(), AgentReply::Done);
    assert_eq!(manager.execute(remove).await.unwrap(), AgentReply::TooLate);
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    assert_eq!(end(&told), &completed("cancelled"));
    let told = until(&mut events, is_end).await;
    assert_eq!(
        told[0],
        AgentEvent::PromptUnqueued {
            prompt_id: third,
            removed: false
        }
    );
    assert_eq!(said(&told), "third");
}

#[tokio::test]
async fn permission_response_uses_an_offered_option() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    for (choice, heard) in [("yes", "selected yes"), ("no", "selected no"), ("stale", "cancelled")] {
        prompt(&manager, "ask").await;
        let told = until(&mut events, is_approval).await;
        assert!(told.iter().any(|event| matches!(event, AgentEvent::ToolCall { .. })));
        assert_eq!(
            answer(&manager, &told, PermissionDecision::select(choice)).await,
            AgentReply::Done
        );
        let told = until(&mut events, is_end).await;
        assert_eq!(said(&told), heard);
        assert!(matches!(told[0], AgentEvent::ApprovalClosed { own: true, .. }));
    }
}

#[tokio::test]
async fn question_response_contains_answers() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "question").await;
    let told = until(&mut events, is_approval).await;
    let answers = Answers::from([("0".to_owned(), "Blue".to_owned())]);
    answer(
        &manager,
        &told,
        PermissionDecision::Select {
            option_id: "yes".to_owned(),
            answers,
        },
    )
    .await;
    assert_eq!(said(&until(&mut events, is_end).await), "selected yes {\"0\":\"Blue\"}");
}

#[tokio::test]
async fn cancelling_a_turn_cancels_its_request() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "ask").await;
    until(&mut events, is_approval).await;
    manager.execute(AgentCommand::Cancel).await.unwrap();
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    let closed = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::ApprovalClosed { option_id: None, .. }))
        .count();
    let requested = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::CancelRequested { .. }))
        .count();
    assert_eq!((closed, requested), (1, 1));
    assert_eq!(end(&told), &completed("cancelled"));
}

#[tokio::test]
async fn models_and_modes_are_switched_either_way() {
    let directory = tempfile::tempdir().unwrap();
    for how in ["", "config-options"] {
        let (manager, mut events) = connect(options(how, directory.path())).await.unwrap();
        manager
            .execute(AgentCommand::SetModel {
                model_id: "b".to_owned(),
            })
            .await
            .unwrap();
        manager
            .execute(AgentCommand::SetMode {
                mode_id: "default".to_owned(),
            })
            .await
            .unwrap();
        let told = until(&mut events, |event| matches!(event, AgentEvent::ModeChanged { .. })).await;
        assert!(
            told.contains(&AgentEvent::ModelChanged {
                model_id: "b".to_owned()
            }),
            "{how}"
        );
        let wrong = manager
            .execute(AgentCommand::SetModel {
                model_id: "none".to_owned(),
            })
            .await
            .unwrap_err();
        assert_eq!(wrong.to_string(), "Model 'none' not found (code -32603)", "{how}");
    }
}

#[tokio::test]
async fn failed_turn_has_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "fail").await;
    let told = until(&mut events, is_end).await;
    let expected = TurnEnd::Failed {
        message: "400 upstream refused".to_owned(),
        code: Some("-32603".to_owned()),
    };
    assert_eq!(end(&told), &expected);
}

#[tokio::test]
async fn start_model_and_mode_are_applied() {
    let directory = tempfile::tempdir().unwrap();
    let options = AcpOptions {
        model: Some("b".to_owned()),
        mode: Some("nonsense".to_owned()),
        open: OpenSession::New,
        ..options("", directory.path())
    };
    let (_manager, mut events) = connect(options).await.unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Notice { .. })).await;
    assert!(told.contains(&AgentEvent::ModelChanged {
        model_id: "b".to_owned()
    }));
}

#[tokio::test]
async fn excess_permission_request_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "ask-often 65").await;
    let told = until(&mut events, is_end).await;
    assert_eq!(told.iter().filter(|event| is_approval(event)).count(), 64);
    assert!(told.iter().any(|event| matches!(event, AgentEvent::Notice { .. })));
    assert_eq!(said(&told), "64 \"cancelled\"");
}
