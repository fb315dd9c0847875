//! The built-in web page: its files and the loopback server for them.
//!
//! [`PageServer`] listens on 127.0.0.1, logs in browsers with one-time links, serves the page, and carries messages of the
//! front-end protocol over a WebSocket. It knows nothing about reviews: a conversation is a stream of incoming messages and
//! a sink for outgoing ones.
//!
//! Every request is checked, in this order: an `Origin` is the page's own (no other web page), the `Host` is this port on
//! this machine (no DNS rebinding), and the session cookie from a login link is present. A WebSocket must also have an
//! `Origin`, which every browser sends. A content security policy without inline scripts limits what the page may do.
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
//! eprintln!("Review changes at {}", server.login_links().create()?);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod assets;
mod config;
mod endpoint;
mod keys;
mod pages;
mod responses;
mod server;
mod socket;

pub use crate::config::{Config, Limits, Timing};
pub use crate::server::{LoginLinks, PageServer};
pub use crate::socket::{Disconnected, Incoming, Outgoing};
