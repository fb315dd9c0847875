import assert from "node:assert/strict";
import { test } from "node:test";
import { Login, parseLink, proof } from "../src/login";

const HOST = "127.0.0.1:80";
const hex = (byte: string) => byte.repeat(32);

function storage(session?: string) {
  const items = new Map<string, string>(session ? [["alongside:session", session]] : []);
  return {
    items,
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
  };
}

/** What a companion that knows a secret does: its challenge, its check of the response, and its welcome. */
async function companion(login: Login, secret: string, session?: string) {
  const response = JSON.parse(await login.respond(JSON.stringify({ nonce: hex("02") }))) as { nonce: string; proof: string };
  const isProved = response.proof === (await proof(secret, "page", HOST, hex("02"), response.nonce));
  const own = await proof(secret, "companion", HOST, hex("02"), response.nonce);
  return { response, isProved, welcome: JSON.stringify(session ? { proof: own, session } : { proof: own }) };
}

test("proof is what the companion computes", async () => {
  // crates/alongside-page/src/proof.rs has this example too.
  assert.equal(
    await proof(hex("01"), "page", HOST, hex("02"), hex("03")),
    "10be48d86da724bcd813b7a04cba47545e711f40963b4bdb3276421b7dc68f56",
  );
});

test("key is exchanged for a session that is kept", async () => {
  const kept = storage();
  const login = new Login(HOST, kept);
  assert.equal(login.isPossible, false);
  assert.equal(login.obstacle, "noLink");
  login.useLink(hex("0a"));
  const first = await companion(login, hex("0a"), hex("0b"));
  assert.ok(first.isProved);
  assert.ok(login.accept(first.welcome));
  assert.equal(kept.items.get("alongside:session"), hex("0b"));
  const again = await companion(login, hex("0b"));
  assert.ok(again.isProved, "it reconnects with the session");
  assert.ok(login.accept(again.welcome));
  const reloaded = await companion(new Login(HOST, kept), hex("0b"));
  assert.ok(reloaded.isProved, "and so does the page after a reload");
});

test("program that does not know the session learns nothing and is not accepted", async () => {
  const login = new Login(HOST, storage(hex("0b")));
  const { response, isProved } = await companion(login, hex("0c"));
  assert.equal(isProved, false);
  assert.ok(!JSON.stringify(response).includes(hex("0b")));
  const forged = await proof(hex("0c"), "companion", HOST, hex("02"), response.nonce);
  for (const answer of [{ proof: forged }, { proof: response.proof }, { proof: "" }, {}, { session: hex("0d") }]) {
    assert.equal(login.accept(JSON.stringify(answer)), false, JSON.stringify(answer));
  }
  const next = await companion(login, hex("0b"));
  assert.ok(next.isProved, "the session is still the same");
  assert.notEqual(next.response.nonce, response.nonce);
});

test("session is used if a link is refused", async () => {
  const login = new Login(HOST, storage(hex("0b")));
  login.useLink(hex("0a"));
  assert.equal(login.refused(), true);
  assert.ok((await companion(login, hex("0b"))).isProved);
  assert.equal(login.refused(), false);
  assert.equal(login.obstacle, "loggedOut");
  const without = new Login(HOST, storage());
  without.useLink(hex("0a"));
  assert.equal(without.refused(), false);
  assert.equal(without.obstacle, "invalidLink");
});

test("only the fragment of a login link is one", () => {
  assert.deepEqual(parseLink("#key=abc"), { key: "abc", view: null });
  assert.deepEqual(parseLink("#key=abc&view=chat"), { key: "abc", view: "chat" });
  for (const other of ["", "#", "#chat", "#reviews", "#key="]) assert.equal(parseLink(other), null);
});
