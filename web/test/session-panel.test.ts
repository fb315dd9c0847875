import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSummary } from "../src/chat/protocol";
import { type SessionPage, SessionPages } from "../src/chat/session-panel";

const session = (sessionId: string): SessionSummary => ({
  sessionId,
  workspaceCwd: "/w",
  displayName: null,
  createdAt: null,
  updatedAt: null,
  hasActivePrompt: false,
  clientCount: 0,
});
const page = (ids: string, nextCursor?: string): SessionPage => ({
  sessions: [...ids].map(session),
  ...(nextCursor === undefined ? {} : { nextCursor }),
});
const ids = (sessions: readonly SessionSummary[]) => sessions.map(({ sessionId }) => sessionId).join("");

test("sessions follow the cursor to the last page", async () => {
  const asked: (string | undefined)[] = [];
  const pages = new SessionPages(async (cursor) => {
    asked.push(cursor);
    return { first: page("cd", "second"), second: page("e") }[cursor ?? ""] ?? page("ab", "first");
  });
  assert.equal(ids(await pages.next()), "ab");
  assert.ok(pages.hasMore);
  assert.equal(ids(await pages.next()), "cd");
  assert.equal(ids(await pages.next()), "e");
  assert.equal(pages.hasMore, false);
  assert.deepEqual(asked, [undefined, "first", "second"]);
  assert.equal(ids(pages.sessions), "abcde");
});

test("session on two pages is listed once", async () => {
  const pages = new SessionPages(async (cursor) => (cursor ? page("bc") : page("ab", "next")));
  await pages.next();
  assert.equal(ids(await pages.next()), "c");
});

test("failed page can be loaded again", async () => {
  let fails = true;
  const pages = new SessionPages(async (cursor) => {
    if (!cursor) return page("a", "next");
    if (fails) throw new Error("offline");
    return page("b");
  });
  await pages.next();
  await assert.rejects(pages.next(), /offline/);
  fails = false;
  assert.equal(ids(await pages.next()), "b");
});
