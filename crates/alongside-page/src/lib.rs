//! The built-in web page: its files and the loopback server for them.
//!
//! [`PageServer`] listens on 127.0.0.1, serves the page, logs it in with one-time links, and carries messages of the
//! front-end protocol over a WebSocket. It knows nothing about reviews: a conversation is a stream of incoming messages and
//! a sink for outgoing ones.
//!
//! Every request is checked, in this order: an `Origin` is the page's own (no other web page), and the `Host` is this port on
//! this machine (no DNS rebinding). A WebSocket must also have an `Origin`, which every browser sends. The page's files have
//! no secrets. Both sides authenticate with the first messages on the WebSocket, and neither sends a secret to prove that it
//! knows it. There is no cookie: browsers would send it to every port of this machine. A content security policy
//! without inline scripts limits what the page may do.
//!
//! ```no_run
//! use alongside_page::{Config, PageServer, View};
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
//! eprintln!("Review changes at {}", server.login_links().create(View::Reviews)?);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod assets;
mod config;
mod endpoint;
mod handshake;
mod link_file;
mod login;
mod pages;
mod proof;
mod responses;
mod server;
mod socket;

pub use crate::config::{Config, Limits, Timing};
pub use crate::server::{LoginLinks, PageServer, View};
pub use crate::socket::{Disconnected, Incoming, Outgoing};
