//! A front end that shows the chat of a serving companion.

use std::ops::{Deref, DerefMut};

use alongside_core::Secret;
use alongside_front::client::ClientError;
use alongside_testing::chat::ChatFront;

use crate::sandbox::{Sandbox, Serving};

/// See [`ChatFront`].
pub(crate) struct Front(ChatFront);

impl Front {
    pub(crate) async fn connect(serving: &Serving, sandbox: &Sandbox) -> Self {
        let (port, token) = serving.people(sandbox);
        Self::connect_to(port, &token).await.unwrap()
    }

    pub(crate) async fn connect_to(port: u16, token: &Secret) -> Result<Self, ClientError> {
        ChatFront::connect_to(port, token).await.map(Self)
    }
}

impl Deref for Front {
    type Target = ChatFront;

    fn deref(&self) -> &ChatFront {
        &self.0
    }
}

impl DerefMut for Front {
    fn deref_mut(&mut self) -> &mut ChatFront {
        &mut self.0
    }
}
