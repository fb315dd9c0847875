//! Nothing slow runs under the core's lock, and nothing that blocks holds up the async workers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use alongside_core::{ReviewId, SessionKey};
use alongside_mcp::Companion as _;
use alongside_protocol::{Backend, FrontEnd, Hello, Notification, Request, SharedNotification};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{broadcast, mpsc as async_mpsc};

use super::{Host, Shared, base, files, lifecycle, test_companion};
use crate::journal::Slot;

/// Only keeps a failing test from hanging.
const TIMEOUT: Duration = Duration::from_secs(20);

fn companion(scratch: &TempDir, host: Host) -> Shared {
    let slot = Slot::take(&test_companion::places(scratch), "editor", &[scratch.path().to_owned()]).unwrap();
    let companion = test_companion::start(scratch, &slot, host);
    tokio::spawn(lifecycle::keep_deadlines(companion.clone()));
    tokio::spawn(files::keep_files(companion.clone()));
    companion
}

/// Work that blocks: once, after it is armed.
struct Blocker {
    is_armed: AtomicBool,
    entered: async_mpsc::UnboundedSender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

/// The other end. Dropping it, for example in a failing test, releases what is blocked.
struct Control {
    has_entered: async_mpsc::UnboundedReceiver<()>,
    release: mpsc::Sender<()>,
}

fn blocker() -> (Arc<Blocker>, Control) {
    let (entered, has_entered) = async_mpsc::unbounded_channel();
    let (release, released) = mpsc::channel();
    let blocker = Blocker {
        is_armed: AtomicBool::new(false),
        entered,
        released: Mutex::new(released),
    };
    (Arc::new(blocker), Control { has_entered, release })
}

impl Blocker {
    fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }

    fn block_if_armed(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            let _ = self.entered.send(());
            let _ = self.released.lock().recv();
        }
    }
}

fn slow_diffs(blocker: &Arc<Blocker>) -> Host {
    let blocker = blocker.clone();
    Host {
        diff_deadline: Box::new(move || {
            blocker.block_if_armed();
            None
        }),
        ..Host::default()
    }
}

async fn call(companion: &Shared, request: Request) {
    let hello = Hello::new("test");
    companion.handle(&FrontEnd::new(hello), request).await.unwrap();
}

async fn focus(companion: &Shared, path: &Path) {
    let request = Request::ContextFocus(serde_json::from_value(json!({ "path": path })).unwrap());
    call(companion, request).await;
}

fn edit(id: ReviewId, content: &str) -> Request {
    Request::ReviewEdit(serde_json::from_value(json!({"review": id, "content": content})).unwrap())
}

async fn open_diff(companion: &Shared, session: &str, path: &Path, content: &str) {
    let session = SessionKey::from(session);
    companion.session_started(&session, None).await;
    let opened = companion.open_diff(&session, path.to_str().unwrap().into(), content.into());
    opened.await.unwrap();
}

/// Work of another client. In a task of its own, so that blocking its thread does not keep the timeout from firing.
async fn in_time<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let task = tokio::spawn(work);
    let result = tokio::time::timeout(TIMEOUT, task).await;
    result.expect("this must not be blocked").unwrap()
}

async fn received(
    mut news: broadcast::Receiver<SharedNotification>,
    is_it: impl Fn(&Notification) -> bool + Send + Sync + 'static,
) {
    in_time(async move { while !is_it(&news.recv().await.unwrap()) {} }).await;
}

/// Another agent proposes a change, and another front end sends a context update, which agents receive.
async fn other_clients_get_through(companion: &Shared, scratch: &TempDir, name: &str) {
    let file = scratch.path().join(name);
    std::fs::write(&file, "old\n").unwrap();
    let news = companion.subscribe();
    in_time({
        let (companion, file, name) = (companion.clone(), file.clone(), name.to_owned());
        async move {
            open_diff(&companion, &name, &file, "new\n").await;
            focus(&companion, &file).await;
        }
    })
    .await;
    received(news, move |notification| {
        let Notification::ContextChanged(context) = notification else {
            return false;
        };
        let open = &context.workspace_state.open_files;
        open.iter().any(|open| Path::new(&open.path) == file)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hung_file_system_blocks_no_other_client() {
    let scratch = tempfile::tempdir().unwrap();
    let (blocker, mut control) = blocker();
    let host = Host {
        resolve: Box::new({
            let blocker = blocker.clone();
            move |path| {
                if path == Path::new("/hung/file") {
                    blocker.block_if_armed();
                }
                files::real_file(path)
            }
        }),
        ..Host::default()
    };
    let companion = companion(&scratch, host);
    blocker.arm();
    focus(&companion, Path::new("/hung/file")).await;
    control.has_entered.recv().await.unwrap();
    other_clients_get_through(&companion, &scratch, "a.txt").await;
    control.release.send(()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_file_of_a_proposal_is_an_error_and_blocks_no_other_client() {
    let scratch = tempfile::tempdir().unwrap();
    let (blocker, mut control) = blocker();
    let host = Host {
        read_base: Box::new({
            let blocker = blocker.clone();
            move |path, unsaved| {
                if path == "/hung/file" {
                    blocker.block_if_armed();
                }
                base::read(path, unsaved)
            }
        }),
        ..Host::default()
    };
    let companion = companion(&scratch, host);
    let session = SessionKey::from("hung");
    companion.session_started(&session, None).await;
    blocker.arm();
    let hung = tokio::spawn({
        let companion = companion.clone();
        async move { companion.open_diff(&session, "/hung/file".into(), "new".into()).await }
    });
    control.has_entered.recv().await.unwrap();
    other_clients_get_through(&companion, &scratch, "a.txt").await;
    // The file has not answered yet.
    let error = in_time(async { hung.await.unwrap() }).await.unwrap_err();
    assert!(error.starts_with("`/hung/file` could not be read within"), "{error}");
    control.release.send(()).unwrap();
}

#[test]
fn hung_folder_blocks_no_async_worker() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let (blocker, mut control) = blocker();
    let host = Host {
        resolve_folder: Box::new({
            let blocker = blocker.clone();
            move |path| {
                blocker.block_if_armed();
                files::real_folder(path)
            }
        }),
        ..Host::default()
    };
    let companion = runtime.block_on(async { companion(&scratch, host) });
    blocker.arm();
    let folder = alongside_platform::path::real(scratch.path()).unwrap().join("inside");
    std::fs::create_dir(&folder).unwrap();
    let request = Request::WorkspaceSet(serde_json::from_value(json!({ "folders": [folder] })).unwrap());
    let setting = runtime.spawn({
        let companion = companion.clone();
        async move { call(&companion, request).await }
    });
    control.has_entered.blocking_recv().unwrap();

    let (done, is_done) = mpsc::channel();
    runtime.spawn({
        let (companion, file) = (companion.clone(), scratch.path().join("a.txt"));
        async move {
            focus(&companion, &file).await;
            let _ = done.send(());
        }
    });
    let other = is_done.recv_timeout(TIMEOUT);
    control.release.send(()).unwrap();
    other.expect("the only worker must not be blocked");
    runtime.block_on(setting).unwrap();
    assert_eq!(companion.workspace(), [folder]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slow_diff_blocks_no_other_client() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file.txt");
    std::fs::write(&file, "1\n2\n3\n").unwrap();
    let (blocker, mut control) = blocker();
    let companion = companion(&scratch, slow_diffs(&blocker));

    blocker.arm();
    let open = tokio::spawn({
        let (companion, file) = (companion.clone(), file.clone());
        async move { open_diff(&companion, "one", &file, "one\n2\n3\n").await }
    });
    control.has_entered.recv().await.unwrap();
    other_clients_get_through(&companion, &scratch, "during-open.txt").await;
    control.release.send(()).unwrap();
    open.await.unwrap();
    let review = companion
        .reviews()
        .into_iter()
        .find(|review| review.path.ends_with("file.txt"));
    let id = review.unwrap().id;

    let change = json!({"review": id, "version": 2, "changes": [{"from": 0, "to": 3, "insert": "eins"}]});
    let requests = [
        ("during-edit.txt", edit(id, "uno\n2\n3\n")),
        (
            "during-change.txt",
            Request::ReviewChange(serde_json::from_value(change).unwrap()),
        ),
    ];
    for (name, request) in requests {
        blocker.arm();
        let update = tokio::spawn({
            let companion = companion.clone();
            async move { call(&companion, request).await }
        });
        control.has_entered.recv().await.unwrap();
        other_clients_get_through(&companion, &scratch, name).await;
        control.release.send(()).unwrap();
        update.await.unwrap();
    }
    assert_eq!(&**companion.review(id).unwrap().text(), "eins\n2\n3\n");

    std::fs::write(&file, "1\n2\n3\n4\n").unwrap();
    let news = companion.subscribe();
    blocker.arm();
    companion.refresh_bases(|_| true);
    control.has_entered.recv().await.unwrap();
    other_clients_get_through(&companion, &scratch, "during-rebase.txt").await;
    control.release.send(()).unwrap();
    received(
        news,
        move |notification| matches!(notification, Notification::ReviewRebased(rebased) if rebased.review == id),
    )
    .await;
    assert_eq!(&**companion.review(id).unwrap().text(), "eins\n2\n3\n4\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overtaken_edit_is_computed_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (blocker, mut control) = blocker();
    let companion = companion(&scratch, slow_diffs(&blocker));
    open_diff(&companion, "one", &scratch.path().join("new.txt"), "text\n").await;
    let id = companion.reviews()[0].id;
    blocker.arm();
    let slow = tokio::spawn({
        let companion = companion.clone();
        async move { call(&companion, edit(id, "slow\n")).await }
    });
    control.has_entered.recv().await.unwrap();
    in_time({
        let companion = companion.clone();
        async move { call(&companion, edit(id, "fast\n")).await }
    })
    .await;
    assert_eq!(&**companion.review(id).unwrap().text(), "fast\n");
    control.release.send(()).unwrap();
    slow.await.unwrap();
    let review = companion.review(id).unwrap();
    assert_eq!((&**review.text(), review.version), ("slow\n", 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn removed_file_leaves_the_context_without_an_editor_event() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("a.txt");
    std::fs::write(&file, "text").unwrap();
    let companion = companion(&scratch, Host::default());
    let shown = |is_shown: bool| {
        move |notification: &Notification| match notification {
            Notification::ContextChanged(context) => context.workspace_state.open_files.is_empty() != is_shown,
            _ => false,
        }
    };
    for _ in 0..2 {
        let news = companion.subscribe();
        std::fs::write(&file, "text").unwrap();
        focus(&companion, &file).await;
        received(news, shown(true)).await;
        let news = companion.subscribe();
        std::fs::remove_file(&file).unwrap();
        received(news, shown(false)).await;
    }
}
