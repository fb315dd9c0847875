//! The companion with the real programs that use it, a module for each topic.
#![allow(missing_docs)]

mod discovery;
