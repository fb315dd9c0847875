// The bridge with a real companion.

import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { Bridge, type BridgeEnd, type RequestError, readLines } from "../src/bridge";
import { EditedDraft } from "../src/drafts";
import type { Notifications, Welcome } from "../src/protocol";

const PROGRAM = process.env["ALONGSIDE_BIN"] ?? "alongside";
const TIMEOUT = { timeout: 60_000 };

/** Hands out what happened, in order, to one waiting test. */
class Queue<Item> {
  private readonly items: Item[] = [];
  private wake: () => void = () => undefined;

  push(item: Item): void {
    this.items.push(item);
    this.wake();
  }

  async next(): Promise<Item> {
    while (this.items.length === 0) await new Promise<void>((resolve) => (this.wake = resolve));
    return this.items.shift() as Item;
  }
}

interface Ready {
  readonly welcome: Welcome;
  readonly isRestart: boolean;
}

/** A bridge in a workspace of its own. */
function start(
  context: TestContext,
  programs = [PROGRAM],
  greeting: (bridge: Bridge, folder: string) => void = () => undefined,
  folder?: string,
) {
  const home = folder ?? realpathSync(mkdtempSync(join(tmpdir(), "alongside-bridge-")));
  const environment = {
    ...process.env,
    HOME: home,
    TMPDIR: home,
    XDG_STATE_HOME: join(home, "state"),
    XDG_CONFIG_HOME: join(home, "config"),
  };
  const [ready, ended] = [new Queue<Ready>(), new Queue<BridgeEnd>()];
  const parameters = ["bridge", "--name", "test", "--display-name", "Test", "--pid", String(process.pid), "--workspace", home];
  const bridge: Bridge = new Bridge(
    { programs, parameters, environment },
    {
      hello: () => ({ protocol: 1, name: "test", watch: true }),
      greeting: () => greeting(bridge, home),
      ready: (welcome, isRestart) => ready.push({ welcome, isRestart }),
      ended: (end) => ended.push(end),
      log: () => undefined,
    },
  );
  context.after(async () => {
    await bridge.stop();
    rmSync(home, { recursive: true, force: true });
  });
  bridge.start();
  return { bridge, ready, ended, home };
}

test("a companion is started and says which workspace it has", TIMEOUT, async (context) => {
  const { ready, home } = start(context);
  const { welcome, isRestart } = await ready.next();
  assert.deepEqual(welcome.workspace, [home]);
  assert.equal(isRestart, false);
});

test("a program that cannot be started is skipped", TIMEOUT, async (context) => {
  const { ready } = start(context, ["/nonexistent/alongside", PROGRAM]);
  await ready.next();
});

test("a program whose start throws is skipped", TIMEOUT, async (context) => {
  // As a .cmd file does on Windows.
  const { ready } = start(context, ["invalid\0path", PROGRAM]);
  await ready.next();
});

test("without a program the end says so", TIMEOUT, async (context) => {
  for (const programs of [["/nonexistent/alongside"], ["invalid\0path"], []]) {
    const { ended } = start(context, programs);
    assert.equal((await ended.next()).reason, "notFound");
  }
});

test("an error response has a kind", TIMEOUT, async (context) => {
  const { bridge, ready } = start(context);
  await ready.next();
  await assert.rejects(bridge.request("review/get", { review: 999 }), (error: RequestError) => error.kind === "unknownReview");
});

test("a stopped companion is not restarted", TIMEOUT, async (context) => {
  const { bridge, ready, ended } = start(context);
  await ready.next();
  await bridge.request("stop");
  assert.equal((await ended.next()).reason, "stopped");
  await assert.rejects(bridge.request("status"), (error: RequestError) => error.kind === "offline");
});

test("a killed companion comes back with its port and is informed first", TIMEOUT, async (context) => {
  const unsaved = "unsaved\n";
  const { bridge, ready, home } = start(context, [PROGRAM], (starting, folder) => {
    starting.notify("context/focus", { path: join(folder, "a.txt") });
    starting.notify("context/buffer", { path: join(folder, "a.txt"), text: unsaved });
  });
  writeFileSync(join(home, "a.txt"), "saved\n");
  const { welcome } = await ready.next();
  const { port } = await bridge.request("status");
  process.kill(welcome.pid, "SIGKILL");
  const again = await ready.next();
  assert.equal(again.isRestart, true);
  const { context: seen } = await bridge.request("context/show");
  assert.deepEqual(
    seen.workspaceState.openFiles.map(({ path }) => path),
    [join(home, "a.txt")],
  );
  assert.equal((await bridge.request("status")).port, port);
});

test("after leaving, the next bridge has the same port", TIMEOUT, async (context) => {
  const first = start(context);
  await first.ready.next();
  const { port } = await first.bridge.request("status");
  await first.bridge.leave();
  const second = start(context, [PROGRAM], () => undefined, first.home);
  await second.ready.next();
  assert.equal((await second.bridge.request("status")).port, port);
  await second.bridge.stop();
});

test("edits of a draft reach the companion, and its edits the draft", TIMEOUT, async (context) => {
  const { bridge, ready } = start(context);
  await ready.next();
  const edited = new Queue<Notifications["review/edited"]>();
  const { review } = await bridge.request("demo/start");
  const texts = await bridge.request("review/get", { review });
  const draft = new EditedDraft(bridge, texts, { changed: () => undefined, failed: assert.fail });
  bridge.on("review/edited", (note) => {
    draft.edited(note);
    edited.push(note);
  });
  draft.editorChanged([{ start: { line: 0, character: 0 }, end: { line: 0, character: 0 }, text: "first\n" }]);
  await draft.flush();
  const typed = await bridge.request("review/get", { review });
  assert.equal(typed.draft, `first\n${texts.draft}`);
  await edited.next();
  const hunk = draft.hunks.find(({ yours, state }) => !yours && state === "accepted");
  assert.ok(hunk);
  await draft.decideHunk(hunk.id, "reject");
  await edited.next();
  const decided = await bridge.request("review/get", { review });
  assert.equal(draft.content, decided.draft);
  assert.equal(draft.hunks.find(({ id }) => id === hunk.id)?.state, "rejected");
  const { outcome } = await bridge.request("review/accept", { review });
  assert.equal(outcome, "accepted");
  draft.close();
});

test("lines are read whole, however they are cut", async () => {
  const stream = new PassThrough();
  const lines: string[] = [];
  readLines(stream, (line) => lines.push(line));
  const bytes = Buffer.from('{"a":"é\u{1f600}"}\n\n{"b":1}\n{"c"');
  for (const byte of bytes) stream.write(Buffer.from([byte]));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(lines, ['{"a":"é\u{1f600}"}', '{"b":1}']);
});
