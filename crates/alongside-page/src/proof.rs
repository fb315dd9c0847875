//! Proofs that one side knows a secret, without sending it.
//!
//! A page that reconnects cannot know which program listens on its port now. So both sides prove that they know the
//! secret, with an HMAC-SHA256 over a nonce of each. The proof also covers which side it comes from, so that it cannot be
//! sent back, and the host and port that the page connected to, so that it cannot be passed on to another port.

use alongside_core::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Companion,
    Page,
}

/// What a proof is about, besides the side. Nonces have the form of a secret, so no field can contain a line break.
#[derive(Clone, Debug)]
pub(crate) struct Exchange<'a> {
    /// The `Host` of the request.
    pub(crate) host: &'a str,
    pub(crate) companion_nonce: &'a Secret,
    pub(crate) page_nonce: &'a Secret,
}

impl Exchange<'_> {
    /// In hexadecimal. Compare it with [`Secret::matches`], which takes the same time wherever two proofs differ.
    pub(crate) fn proof(&self, secret: &Secret, side: Side) -> Option<Secret> {
        let side = match side {
            Side::Companion => "companion",
            Side::Page => "page",
        };
        let message = [
            "alongside page 1",
            side,
            self.host,
            self.companion_nonce.reveal(),
            self.page_nonce.reveal(),
        ]
        .join("\n");
        // HMAC accepts keys of any length, so this does not fail.
        let mut hmac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()).ok()?;
        hmac.update(message.as_bytes());
        Some(Secret::from_bytes(hmac.finalize().into_bytes().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(secret: u8, side: Side, host: &str, companion: u8, page: u8) -> String {
        let exchange = Exchange {
            host,
            companion_nonce: &Secret::from_bytes([companion; 32]),
            page_nonce: &Secret::from_bytes([page; 32]),
        };
        let proof = exchange.proof(&Secret::from_bytes([secret; 32]), side).unwrap();
        proof.reveal().to_owned()
    }

    #[test]
    fn every_part_of_the_exchange_changes_the_proof() {
        let proofs = [
            proof(1, Side::Page, "127.0.0.1:80", 2, 3),
            proof(9, Side::Page, "127.0.0.1:80", 2, 3),
            proof(1, Side::Companion, "127.0.0.1:80", 2, 3),
            proof(1, Side::Page, "127.0.0.1:81", 2, 3),
            proof(1, Side::Page, "127.0.0.1:80", 9, 3),
            proof(1, Side::Page, "127.0.0.1:80", 2, 9),
            proof(1, Side::Page, "127.0.0.1:80", 3, 2),
        ];
        for (index, one) in proofs.iter().enumerate() {
            assert!(!proofs[..index].contains(one), "{index}");
        }
    }

    /// The page's own implementation must produce the same: `web/test/login.test.ts` has this example too.
    #[test]
    fn proof_is_what_the_page_computes() {
        assert_eq!(
            proof(1, Side::Page, "127.0.0.1:80", 2, 3),
            "10be48d86da724bcd813b7a04cba47545e711f40963b4bdb3276421b7dc68f56"
        );
    }
}
