//! Dependencies: licenses, sources and known vulnerabilities, with cargo-deny.

use crate::plan::Verdict;
use crate::{cargo, run};

/// What needs no network is checked always. Without cargo-deny or the advisories, the summary says what was not checked.
pub(crate) fn check() -> Result<Verdict, String> {
    let installed = cargo(&["deny", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        let reason = "cargo-deny is not installed; run `cargo install --locked cargo-deny`";
        return Ok(Verdict::NotChecked(reason.to_owned()));
    }
    run(cargo(&[
        "deny",
        "--offline",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))?;
    if run(cargo(&["deny", "--locked", "fetch", "db"])).is_err() {
        let reason = "the advisories cannot be downloaded; licenses and sources were checked";
        return Ok(Verdict::NotChecked(reason.to_owned()));
    }
    run(cargo(&["deny", "--locked", "check", "--disable-fetch", "advisories"]))?;
    Ok(Verdict::Passed)
}
