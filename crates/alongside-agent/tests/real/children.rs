//! The real `qwen --acp` and `gemini --acp`.

use std::sync::Arc;

use alongside_agent::OpenSession;
use alongside_agent::acp::{AcpError, AcpOptions, AgentProcess, AllowWrites, ProposedWrite, ReviewGate, WriteDecision};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentReply, AgentTarget};
use alongside_core::SessionId;
use alongside_testing::{FakeModel, Prompt};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{Chat, converse, said, words};
use crate::programs::Place;

/// Reviews every change by adding to it, and keeps what it was shown.
#[derive(Default)]
struct Reviewer {
    shown: Mutex<Vec<ProposedWrite>>,
}

impl ReviewGate for Reviewer {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        self.shown.lock().push(write.clone());
        Box::pin(std::future::ready(WriteDecision::Write(write.text)))
    }
}

/// Whether a local agent can load a session of its previous process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reopening {
    Works,
    /// Gemini CLI 0.61 usually does not find its own recording of a session, though it is there.
    MayBeRefused,
}

async fn child(process: AgentProcess, place: Place, reopening: Reopening) {
    let reviewer = Arc::new(Reviewer::default());
    let gate: Arc<dyn ReviewGate> = Arc::<Reviewer>::clone(&reviewer);
    let options = AcpOptions {
        mode: Some("default".to_owned()),
        ..AcpOptions::new(process.clone(), place.workspace(), gate)
    };
    let mut chat = Chat::connect(AgentTarget::Child(Box::new(options))).await.unwrap();
    let told = chat
        .until(|event| matches!(event, AgentEvent::ModeChanged { .. }))
        .await;
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::Models(models) if !models.available.is_empty()))
    );
    converse(&mut chat, &place).await;
    assert_eq!(
        reviewer.shown.lock().len(),
        1,
        "the change that was allowed went through the review"
    );

    let found = chat
        .execute(AgentCommand::FindFiles {
            pattern: "new".to_owned(),
        })
        .await;
    let paths = vec!["new.txt".to_owned()];
    assert_eq!(found, AgentReply::Files { paths });
    let session_id = chat.manager.session_id().unwrap();
    if reopening == Reopening::Works {
        name(&mut chat, &session_id).await;
    }
    chat.manager.disconnect().await;
    let options = AcpOptions {
        open: OpenSession::Load(session_id.clone()),
        ..AcpOptions::new(process, place.workspace(), Arc::new(AllowWrites))
    };
    let reopened = Chat::connect(AgentTarget::Child(Box::new(options))).await;
    let mut chat = match reopened {
        Ok(chat) => chat,
        Err(AgentError::Acp(AcpError::Rpc { message, .. }))
            if reopening == Reopening::MayBeRefused && message.contains("No previous sessions found") =>
        {
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let told = chat
        .until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
        .await;
    assert!(matches!(&told[0], AgentEvent::Connected(session) if session.session_id == session_id));
    assert!(said(&told).contains("word0"), "{told:#?}");
    // Gemini CLI goes on telling the history after it has said that the session is open.
    let told = chat.ask(&Prompt::Count(20).to_string()).await;
    assert!(said(&told).trim().ends_with(words(20).trim()));
}

/// Gives the session a name, and finds it in the list.
async fn name(chat: &mut Chat, session_id: &SessionId) {
    let title = "A name".to_owned();
    chat.execute(AgentCommand::Rename { title }).await;
    chat.until(|event| matches!(event, AgentEvent::Title { title } if title == "A name"))
        .await;
    let AgentReply::Sessions { sessions, .. } = chat.execute(AgentCommand::ListSessions { cursor: None }).await else {
        panic!()
    };
    let own = sessions.iter().find(|session| session.session_id == *session_id);
    assert_eq!(
        own.and_then(|session| session.display_name.as_deref()),
        Some("A name"),
        "{sessions:?}"
    );
}

#[tokio::test]
async fn a_qwen_child_is_talked_to() {
    let place = Place::new(FakeModel::start().port());
    child(place.qwen(), place, Reopening::Works).await;
}

#[tokio::test]
async fn a_gemini_child_is_talked_to() {
    let place = Place::new(FakeModel::start().port());
    child(place.gemini(), place, Reopening::MayBeRefused).await;
}
