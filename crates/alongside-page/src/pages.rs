//! Error pages and messages: plain HTML or text that tells the user what to do.

pub(crate) const NOT_LOGGED_IN: &str = concat!(
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width\"><title>alongside: not logged in</title>",
    "<main><h1>This browser is not logged in</h1>",
    "<p>Run <code>alongside page</code> in a terminal and open the link it prints.</p>",
    "<p>If you just opened such a link, <a href=\"/\">continue to the page</a>.</p></main></html>\n"
);

/// For a used, expired or unknown login link.
pub(crate) const USED_LINK: &str = concat!(
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width\"><title>alongside: link expired</title>",
    "<main><h1>This link is no longer valid</h1>",
    "<p>Login links work once and expire after ten minutes. Run <code>alongside page</code> in a terminal to get a new one.</p>",
    "<p>If this browser is already logged in, <a href=\"/\">continue to the page</a>.</p></main></html>\n"
);

pub(crate) const NOT_FOUND: &str = "Not found.\n";
pub(crate) const WRONG_METHOD: &str = "Only GET and HEAD are allowed.\n";
pub(crate) const NO_UPGRADE: &str = "This endpoint requires a WebSocket (version 13).\n";
pub(crate) const TOO_MANY_PAGES: &str = "Too many pages are open; close one of them.\n";
pub(crate) const NO_RANDOMNESS: &str = "Cannot get random bytes from the system; try again.\n";
