import assert from "node:assert/strict";
import { test } from "node:test";
import { headline } from "../src/chat/bar";
import { checkName, checkResult } from "../src/chat/panels";
import { acceptLabel, shownState } from "../src/editor/hunks";
import type { Hunk } from "../src/protocol";

const hunk = (state: Hunk["state"], id = 1, yours = false): Hunk => {
  const lines = { start: 1, count: 1 };
  return { id, state, yours, base: lines, draft: lines, proposal: lines };
};

test("hunk is a proposal until it was touched", () => {
  assert.equal(shownState(hunk("accepted"), new Set()), "proposed");
  assert.equal(shownState(hunk("accepted"), new Set([1])), "accepted");
  assert.equal(shownState(hunk("rejected"), new Set()), "rejected");
});

test("Accept button says what it will do", () => {
  assert.equal(acceptLabel([hunk("accepted")]), "Accept 1 hunk");
  assert.equal(acceptLabel([hunk("accepted"), hunk("accepted", 2)]), "Accept all 2 hunks");
  assert.equal(acceptLabel([hunk("accepted"), hunk("rejected", 2)]), "Accept 1 of 2 hunks");
  assert.equal(acceptLabel([hunk("edited"), hunk("rejected", 2)]), "Accept 1 of 2 hunks, as edited");
  assert.equal(acceptLabel([hunk("rejected")]), "Accept without changes");
});

test("header says the same as the body", () => {
  assert.deepEqual(headline("connected", false, false), ["companion unreachable", "bad"]);
  assert.deepEqual(headline("ended", false, true), ["could not connect", "bad"]);
  assert.deepEqual(headline("ended", true, true), ["disconnected", "bad"]);
});

test("checks of a daemon are in plain words", () => {
  const cell = { kind: "mcp_discovery", status: "not_started", locality: "acp", detail: { discoveryState: "not_started" }, error: null };
  assert.equal(checkName(cell.kind), "MCP servers");
  assert.deepEqual(checkResult(cell), ["not checked yet", ""]);
  assert.equal(checkName("some_new_check"), "Some new check");
});
