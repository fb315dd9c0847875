//! The built-in review page: its assets and the loopback server that they come from.
//!
//! [`PageServer`] listens on 127.0.0.1, lets a browser in that followed a one-time link, serves the page and carries
//! the front-end protocol between the page and whoever answers it. It knows nothing of reviews: a conversation is a
//! stream of messages in and a sink of messages out.
//!
//! A request passes these gates, in this order: the `Host` is this port on this machine (no rebinding), an `Origin` is
//! our own (no foreign page), and a session cookie that only a login link gives. A WebSocket must also have an `Origin`,
//! which every browser sends. What the page may do is bounded by a content security policy without inline script.
//!
//! ```no_run
//! use alongside_page::{Config, PageServer};
//! use futures_util::{SinkExt, StreamExt};
//!
//! # async fn example() -> std::io::Result<()> {
//! let server = PageServer::bind(Config::default(), |mut incoming, mut outgoing| async move {
//!     while let Some(message) = incoming.next().await {
//!         if outgoing.send(message).await.is_err() {
//!             break;
//!         }
//!     }
//! })
//! .await?;
//! eprintln!("Review changes at {}", server.login_link()?);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod assets;
mod config;
mod endpoint;
mod guard;
mod keys;
mod pages;
mod responses;
mod server;
mod socket;

pub use crate::config::{Config, Limits, Timing};
pub use crate::server::{LoginLinks, PageServer};
pub use crate::socket::{Gone, Incoming, Outgoing};
