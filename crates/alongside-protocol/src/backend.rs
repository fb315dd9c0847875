//! What the companion implements for front ends.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alongside_core::diagnostics::FrontEndId;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{ErrorKind, Hello, Method, Notification, Request, RequestError, Response};

/// A front end after its `hello`.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    pub hello: Hello,
    /// The id of the request that is being handled.
    pub request: Option<Value>,
    id: FrontEndId,
}

/// The request of a front end that a notification follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    front_end: FrontEndId,
    request: Value,
}

impl FrontEnd {
    /// A front end that connects now.
    pub fn new(hello: Hello) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = FrontEndId(LAST.fetch_add(1, Ordering::Relaxed));
        Self {
            hello,
            request: None,
            id,
        }
    }

    /// `None` for a request that wants no response.
    pub fn origin(&self) -> Option<Origin> {
        let (front_end, request) = (self.id, self.request.clone()?);
        Some(Origin { front_end, request })
    }

    /// What it reported goes with it.
    pub fn id(&self) -> FrontEndId {
        self.id
    }
}

/// The companion as front ends see it.
pub trait Backend: Send + Sync + 'static {
    /// Handles a request. The response must be the variant of the same name.
    fn handle(
        &self,
        front_end: &FrontEnd,
        request: Request,
    ) -> impl Future<Output = Result<Response, RequestError>> + Send;

    /// A front end disconnected. Never waits.
    fn disconnected(&self, front_end: &FrontEnd);

    /// Everything that happens from now on. A receiver that falls behind misses notifications and never delays the sender.
    fn subscribe(&self) -> broadcast::Receiver<SharedNotification>;

    /// The chat from now on. It has its own channel, so that a long answer does not push out a review.
    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification>;

    /// Handles a request of a front end in the same process.
    fn call<M: Method>(
        &self,
        front_end: &FrontEnd,
        params: M::Params,
    ) -> impl Future<Output = Result<M::Response, RequestError>> + Send {
        let request = M::request(params);
        async move {
            let response = self.handle(front_end, request).await?;
            M::response(response).ok_or_else(|| {
                let message = format!("`{}` got the response of another method", M::NAME);
                RequestError::new(ErrorKind::Internal, message)
            })
        }
    }
}

/// A notification for any number of front ends, encoded at most once.
#[derive(Clone, Debug)]
pub struct SharedNotification(Arc<Encoded>);

#[derive(Debug)]
struct Encoded {
    notification: Notification,
    origin: Option<Origin>,
    text: OnceLock<String>,
}

impl SharedNotification {
    pub fn new(notification: Notification, origin: Option<Origin>) -> Self {
        Self(Arc::new(Encoded {
            notification,
            origin,
            text: OnceLock::new(),
        }))
    }

    /// For the front end whose request caused it, the notification with that request; for others, the same as for all, which
    /// is `None` here.
    pub fn for_origin(&self, front_end: FrontEndId) -> Option<Notification> {
        let origin = self.0.origin.as_ref().filter(|origin| origin.front_end == front_end)?;
        let Notification::ReviewEdited(edited) = &self.0.notification else {
            return None;
        };
        let mut edited = edited.clone();
        edited.request = Some(origin.request.clone());
        Some(Notification::ReviewEdited(edited))
    }

    /// The message as text. `encode` runs for the first front end; all others get the same text.
    pub fn encoded<E>(&self, encode: impl FnOnce(&Notification) -> Result<String, E>) -> Result<&str, E> {
        if let Some(text) = self.0.text.get() {
            return Ok(text);
        }
        let text = encode(&self.0.notification)?;
        Ok(self.0.text.get_or_init(|| text))
    }
}

impl From<Notification> for SharedNotification {
    fn from(notification: Notification) -> Self {
        Self::new(notification, None)
    }
}

impl Deref for SharedNotification {
    type Target = Notification;

    fn deref(&self) -> &Notification {
        &self.0.notification
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Empty;

    #[test]
    fn notification_is_encoded_once_for_all_front_ends() {
        let shared = SharedNotification::from(Notification::Resync(Empty {}));
        let copy = shared.clone();
        assert_eq!(shared.encoded(|_| Err(())), Err(()));
        assert_eq!(shared.encoded(|_| Ok::<_, ()>("text".to_owned())), Ok("text"));
        assert_eq!(copy.encoded(|_| Err(())), Ok("text"));
        assert_eq!(*copy, Notification::Resync(Empty {}));
    }
}
