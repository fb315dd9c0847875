//! The calls of a session that wait for a decision, by the name of their tab.

use std::collections::HashMap;

use tokio::sync::oneshot;

#[derive(Default)]
pub(crate) struct Tabs(HashMap<String, oneshot::Sender<()>>);

/// One call that waits.
pub(crate) struct Tab(oneshot::Receiver<()>);

impl Tabs {
    /// Opens a tab. An open one of the same name is closed.
    pub(crate) fn open(&mut self, name: &str) -> Tab {
        // A decided call leaves its entry behind, which would otherwise stay until the agent closes the tab.
        self.0.retain(|_, tab| !tab.is_closed());
        let (sender, receiver) = oneshot::channel();
        self.0.insert(name.to_owned(), sender);
        Tab(receiver)
    }

    /// Whether a call waited.
    pub(crate) fn close(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some_and(|tab| !tab.is_closed())
    }

    /// How many calls waited.
    pub(crate) fn close_all(&mut self) -> usize {
        let tabs = std::mem::take(&mut self.0);
        tabs.into_values().filter(|tab| !tab.is_closed()).count()
    }
}

impl Tab {
    /// Completes when the tab is closed, or its session has ended.
    pub(crate) async fn closed(self) {
        // Nothing is ever sent: the sender is dropped.
        let _ = self.0.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tab_is_closed_once() {
        let mut tabs = Tabs::default();
        let tab = tabs.open("a");
        let other = tabs.open("b");
        assert!(tabs.close("a"));
        tab.closed().await;
        assert!(!tabs.close("a"));
        assert_eq!(tabs.close_all(), 1);
        other.closed().await;
        assert_eq!(tabs.close_all(), 0);
    }

    #[test]
    fn decided_call_leaves_nothing_behind() {
        let mut tabs = Tabs::default();
        for number in 0..100 {
            drop(tabs.open(&number.to_string()));
        }
        assert_eq!(tabs.0.len(), 1);
        assert!(!tabs.close("99"), "it was decided");
    }
}
