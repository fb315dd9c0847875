import assert from "node:assert/strict";
import { test } from "node:test";
import { Calls, RequestError } from "../src/channel";
import type { Message } from "../src/protocol";

function start() {
  const sent: Message[] = [];
  const calls = new Calls();
  const request = () => calls.request((message) => sent.push(message), "chat/state", {});
  return { calls, sent, request };
}

test("responses are matched by id, in any order", async () => {
  const { calls, sent, request } = start();
  const [one, two] = [request(), request()];
  calls.receive({ id: sent[1]?.id ?? 0, result: "second" });
  calls.receive({ id: sent[0]?.id ?? 0, result: "first" });
  assert.deepEqual([await one, await two], ["first", "second"]);
});

test("an error response has its kind and hint", async () => {
  const { calls, sent, request } = start();
  const failed = request();
  calls.receive({ id: sent[0]?.id ?? 0, error: { message: "no", data: { kind: "busy", hint: "Wait." } } });
  await assert.rejects(failed, new RequestError("busy", "no", "Wait."));
});

test("a lost connection fails pending requests as offline, and late responses are ignored", async () => {
  const { calls, sent, request } = start();
  const lost = request();
  calls.abandon();
  await assert.rejects(lost, { kind: "offline" });
  calls.receive({ id: sent[0]?.id ?? 0, result: {} });
});

test("a notification goes to its handler, and an unknown one nowhere", () => {
  const { calls } = start();
  const heard: unknown[] = [];
  calls.on("resync", (params) => heard.push(params));
  calls.receive({ method: "resync", params: { a: 1 } });
  calls.receive({ method: "other", params: {} });
  assert.deepEqual(heard, [{ a: 1 }]);
});
