//! The files of the workspace: read, written through a review, found.

use std::sync::Arc;

use alongside_agent::acp::{AcpOptions, ProposedWrite, ReviewGate, WriteDecision};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentReply};
use futures_util::future::BoxFuture;

use super::{connect, is_end, options, prompt, said, until};

/// Refuses, edits or never answers, by the name of the file.
struct Gate;

impl ReviewGate for Gate {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        let name = write.path.file_name().unwrap().to_str().unwrap();
        match name {
            "refused" => Box::pin(std::future::ready(WriteDecision::Refuse {
                reason: "not this one".to_owned(),
            })),
            "endless" => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(WriteDecision::Write(format!(
                "{} (reviewed)",
                write.text
            )))),
        }
    }
}

#[tokio::test]
async fn files_are_read_and_written_through_the_review() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let options = AcpOptions {
        gate: Arc::new(Gate),
        ..options("", directory.path())
    };
    let (manager, mut events) = connect(options).await.unwrap();
    prompt(&manager, &format!("write {} text", path.display())).await;
    assert_eq!(said(&until(&mut events, is_end).await), "written");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text (reviewed)");
    prompt(&manager, &format!("read {}", path.display())).await;
    assert_eq!(said(&until(&mut events, is_end).await), "text (reviewed)");
    prompt(
        &manager,
        &format!("write {} text", directory.path().join("refused").display()),
    )
    .await;
    assert_eq!(said(&until(&mut events, is_end).await), "not this one");
}

#[tokio::test]
async fn pending_review_blocks_nothing_and_ends_with_its_turn() {
    let directory = tempfile::tempdir().unwrap();
    let options = AcpOptions {
        gate: Arc::new(Gate),
        ..options("", directory.path())
    };
    let (manager, mut events) = connect(options).await.unwrap();
    prompt(
        &manager,
        &format!("write {} text", directory.path().join("endless").display()),
    )
    .await;
    until(&mut events, |event| matches!(event, AgentEvent::ThinkingChunk { .. })).await;
    manager
        .execute(AgentCommand::SetModel {
            model_id: "b".to_owned(),
        })
        .await
        .unwrap();
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    assert_eq!(said(&told), "the turn was cancelled");
}

#[tokio::test]
async fn files_are_found_for_a_mention() {
    let directory = tempfile::tempdir().unwrap();
    for path in ["src/main.rs", "target/main.o", ".gitignore"] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "target\n").unwrap();
    }
    let (manager, _events) = connect(options("", directory.path())).await.unwrap();
    let find = async |pattern: &str| {
        let pattern = pattern.to_owned();
        manager.execute(AgentCommand::FindFiles { pattern }).await
    };
    let main = AgentReply::Files {
        paths: vec!["src/main.rs".to_owned()],
    };
    assert_eq!(find("MAIN").await.unwrap(), main);
    assert_eq!(find("**/*main*").await.unwrap(), main);
    let error = find("a{b").await.unwrap_err();
    assert!(matches!(error, AgentError::Pattern(_)), "{error}");
}

#[tokio::test]
async fn excess_file_request_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = AcpOptions {
        gate: Arc::new(Gate),
        ..options("", directory.path())
    };
    let (manager, mut events) = connect(options).await.unwrap();
    // Every one of them waits for a review.
    prompt(
        &manager,
        &format!("write-often 65 {}", directory.path().join("endless").display()),
    )
    .await;
    let told = until(&mut events, is_end).await;
    assert_eq!(said(&told), "64 \"too many file requests at once\"");
}
