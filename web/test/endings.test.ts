import assert from "node:assert/strict";
import { test } from "node:test";
import { firstCause, readable, sessionEnd, turnFailed, turnStopped } from "../src/chat/endings";
import { EMPTY, foldAll } from "../src/chat/transcript";

const MACHINE = /[a-z]_[a-z]|channel|[0-9a-f]{8}-[0-9a-f]{4}/;

// As recorded from a daemon.
const REASONS = [
  "daemon_shutdown",
  "channel_closed",
  "client_close",
  "ring_evicted",
  "some_new_code",
  "agent channel closed mid-request (session 67604adb-0664-49e6-8c19-c10f94addc11)",
  "session 67604adb-0664-49e6-8c19-c10f94addc11 is not live",
  "Invalid params: Session is closing",
  "the agent exited (signal: 9)",
  // As a killed `qwen --acp` leaves it.
  "the agent exited (signal: 9 (SIGKILL)): [perf] acp agent event loop stall: max=8195.670015ms",
  "",
];

test("each ending is a sentence with a next step, without codes and ids", () => {
  for (const reason of REASONS) {
    const endings = [
      turnFailed(reason),
      ...["requested", "died", "closed", "unauthorized", "failed"].flatMap((kind) => [
        sessionEnd({ kind, reason, reopen: "s" }),
        sessionEnd({ kind, reason, reopen: null }),
      ]),
    ];
    for (const ending of endings) {
      assert.doesNotMatch(ending, MACHINE, reason);
      assert.match(ending, /^[A-Z].*[.] [A-Z].*[.]$/, reason);
    }
  }
  for (const stopReason of ["cancelled", "max_tokens", "max_turn_requests", "refusal", "some_new_reason"]) {
    assert.match(turnStopped(stopReason), /^[A-Z].*[.] [A-Z].*[.]$/);
    assert.doesNotMatch(turnStopped(stopReason), MACHINE);
  }
});

test("conversation shows the sentence", () => {
  const shown = foldAll(EMPTY, [
    { type: "turnEnded", promptId: "p", end: { outcome: "failed", message: REASONS[5] ?? "", code: null } },
    { type: "turnEnded", promptId: "q", end: { outcome: "completed", stopReason: "some_new_reason" } },
  ]);
  assert.deepEqual(
    shown.items.map((item) => item.kind === "notice" && item.message),
    ["The agent stopped unexpectedly. Send your message again to retry.", "The agent stopped before it was done. Ask it to continue."],
  );
});

test("what the agent says in words stays", () => {
  assert.equal(readable("400 fake upstream refused"), "400 fake upstream refused.");
  assert.equal(readable("the agent exited (exit status: 1)"), "The agent exited (exit status: 1).");
  assert.equal(readable("the agent exited (exit status: 1): no API key is set"), "The agent stopped: no API key is set.");
});

test("killed agent is described without its signal and its last line", () => {
  const reason = "the agent exited (signal: 9 (SIGKILL)): [perf] acp agent event loop stall: max=8195.670015ms";
  assert.equal(turnFailed(reason), "The agent stopped unexpectedly. Send your message again to retry.");
  assert.equal(
    sessionEnd({ kind: "died", reason, reopen: "s" }),
    "The agent stopped unexpectedly. Send a message, or reopen the session, to continue where it ended.",
  );
});

test("of nested causes only the first is shown", () => {
  assert.equal(firstCause("cannot reach the daemon: connection refused: os error 111"), "cannot reach the daemon");
  assert.equal(firstCause("unknown model: x"), "unknown model: x");
});
