// Logging in. The key of a login link is exchanged once for the session's secret, which stays in this tab.
//
// After a restart, any program may listen on the companion's port. So neither side sends a secret to show that it knows it: both
// send a proof over two nonces (crates/alongside-page/src/proof.rs), and the page sends nothing else before it has checked the
// companion's. There is no cookie, because browsers send cookies to every port of this machine.

const STORAGE_KEY = "alongside:session";

/** The code with which the companion closes the WebSocket of a page that has to log in. */
export const NOT_LOGGED_IN = 4401;

type Side = "companion" | "page";

/** What both sides prove to know `secret` with, in hexadecimal. */
export async function proof(secret: string, side: Side, host: string, companionNonce: string, pageNonce: string): Promise<string> {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const message = ["alongside page 1", side, host, companionNonce, pageNonce].join("\n");
  return hexadecimal(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(message))));
}

/** The key and the view in the fragment of a login link; `null` for any other fragment. */
export function parseLink(fragment: string): { readonly key: string; readonly view: string | null } | null {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const key = parameters.get("key");
  return key ? { key, view: parameters.get("view") } : null;
}

/** Why the page cannot log in. */
export type Obstacle = "noLink" | "invalidLink" | "loggedOut";

export class Login {
  private key: string | null = null;
  private session: string | null;
  private linkWasRefused = false;
  /** The proof that the companion owes for the current connection. */
  private expected = "";

  constructor(
    private readonly host: string,
    private readonly storage: Pick<Storage, "getItem" | "setItem"> | null,
  ) {
    this.session = storage?.getItem(STORAGE_KEY) ?? null;
  }

  /** Uses a login link, in place of what is known. */
  useLink(key: string): void {
    this.key = key;
    this.linkWasRefused = false;
  }

  get isPossible(): boolean {
    return this.key !== null || this.session !== null;
  }

  get obstacle(): Obstacle {
    if (this.session !== null) return "loggedOut";
    return this.linkWasRefused ? "invalidLink" : "noLink";
  }

  /** The response to the companion's challenge, its first message. */
  async respond(challenge: string): Promise<string> {
    const { nonce: companionNonce } = JSON.parse(challenge) as { nonce: string };
    const secret = this.key ?? this.session;
    if (secret === null) throw new Error("There is nothing to log in with.");
    const nonce = hexadecimal(crypto.getRandomValues(new Uint8Array(32)));
    this.expected = await proof(secret, "companion", this.host, companionNonce, nonce);
    return JSON.stringify({ nonce, proof: await proof(secret, "page", this.host, companionNonce, nonce) });
  }

  /** Checks the companion's proof, in its second message, and keeps the session's secret. */
  accept(welcome: string): boolean {
    const { proof, session } = JSON.parse(welcome) as { proof?: string; session?: string };
    if (!this.expected || proof !== this.expected) return false;
    this.expected = "";
    this.key = null;
    if (session) {
      this.session = session;
      this.storage?.setItem(STORAGE_KEY, session);
    }
    return true;
  }

  /** The companion refused the login. Returns whether there is something else to try. */
  refused(): boolean {
    if (this.key === null) return false;
    this.key = null;
    this.linkWasRefused = true;
    return this.session !== null;
  }
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
