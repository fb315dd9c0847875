//! The fake model, with its requests kept as an artifact when a test fails.

use std::ops::Deref;
use std::time::Duration;

use serde_json::Value;

use crate::artifacts;

/// See [`alongside_testing::FakeModel`].
pub struct FakeModel(alongside_testing::FakeModel);

impl FakeModel {
    pub fn start() -> Self {
        Self(alongside_testing::FakeModel::start())
    }

    /// Waits for a request since `mark` whose newest message contains `text`, and returns the whole request.
    pub fn wait_for_message(&self, mark: usize, text: &str, limit: Duration) -> Value {
        self.0.wait_for_message(mark, text, limit).unwrap_or_else(|| {
            artifacts::keep("model.jsonl", &self.received_since(0));
            panic!("the model never received {text:?}")
        })
    }
}

impl Deref for FakeModel {
    type Target = alongside_testing::FakeModel;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
