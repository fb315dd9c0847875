//! The few plain pages that are shown instead of the page: without script, without style, and saying what to do.

/// Shown to a browser that is not logged in.
pub(crate) const NOT_LOGGED_IN: &str = concat!(
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width\"><title>alongside: not logged in</title>",
    "<main><h1>This browser is not logged in</h1>",
    "<p>Run <code>alongside page</code> in a terminal and open the link it prints.</p>",
    "<p>If you just opened such a link, <a href=\"/\">continue to the page</a>.</p></main></html>\n"
);

/// Shown for a login link that is used up, too old or never was.
pub(crate) const USED_LINK: &str = concat!(
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width\"><title>alongside: link expired</title>",
    "<main><h1>This link is no longer valid</h1>",
    "<p>Login links work once and expire after ten minutes. Run <code>alongside page</code> in a terminal to get a new one.</p>",
    "<p>If this browser is already logged in, <a href=\"/\">continue to the page</a>.</p></main></html>\n"
);

/// Said when the `Host` is not ours.
pub(crate) const WRONG_HOST: &str = "The Host header does not name this port on this machine.\n";
/// Said when a foreign page asks.
pub(crate) const WRONG_ORIGIN: &str = "Cross-origin requests are not allowed.\n";
/// Said when a WebSocket does not come from a page.
pub(crate) const NO_ORIGIN: &str = "Cross-origin WebSockets are not allowed.\n";
/// Said for any other address.
pub(crate) const NOT_FOUND: &str = "Not found.\n";
/// Said for any other method than GET and HEAD.
pub(crate) const WRONG_METHOD: &str = "Only GET and HEAD are allowed.\n";
/// Said when `/front` is asked for without an upgrade.
pub(crate) const NO_UPGRADE: &str = "This endpoint requires a WebSocket (version 13).\n";
/// Said when as many pages speak as may.
pub(crate) const TOO_MANY_PAGES: &str = "Too many pages are open; close one of them.\n";
/// Said when the system gives no random numbers.
pub(crate) const NO_RANDOMNESS: &str = "Cannot get random bytes from the system; try again.\n";
