// The bridge and the draft under `alongside bridge --check`, which starts this file as the program under check.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Bridge } from "../src/bridge";
import { EditedDraft } from "../src/drafts";

const FOLDER = process.env["ALONGSIDE_CHECK"];

interface Finding {
  readonly rule: string;
  readonly required: boolean;
  readonly fulfilled: boolean;
}

if (FOLDER) act(FOLDER);
else
  test("the bridge and the draft fulfill every required rule", { timeout: 60_000 }, () => {
    const program = process.env["ALONGSIDE_BIN"] ?? "alongside";
    const parameters = ["bridge", "--check", "--json", "--", process.execPath, import.meta.filename];
    const { stdout, stderr } = spawnSync(program, parameters, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    assert.notEqual(stdout, "", stderr);
    const report = JSON.parse(stdout) as Finding[];
    assert.ok(report.length > 10, stdout);
    assert.deepEqual(
      report.filter(({ required, fulfilled }) => required && !fulfilled),
      [],
    );
  });

/** What a user does. The bridge starts a program that connects it to the check, which is at our own stdin and stdout. */
function act(folder: string): void {
  const scratch = mkdtempSync(join(tmpdir(), "alongside-check-"));
  const socket = join(scratch, "relay");
  const relay = 'const s = require("node:net").connect(process.argv[1]); process.stdin.pipe(s); s.pipe(process.stdout);';
  const server = createServer((connection) => {
    process.stdin.pipe(connection);
    connection.pipe(process.stdout);
  });
  const bridge: Bridge = new Bridge(
    { programs: [process.execPath], parameters: ["-e", relay, socket], environment: process.env },
    {
      hello: () => ({ protocol: 1, name: "test", watch: true, interactive: true }),
      greeting: () => bridge.notify("context/focus", { path: join(folder, "open.txt"), cursor: { line: 1, character: 1 } }),
      ready: () => undefined,
      ended: () => {
        rmSync(scratch, { recursive: true, force: true });
        process.exit(0);
      },
      log: (line) => console.error(line),
    },
  );
  bridge.on("review/opened", async ({ id, path }) => {
    if (path.endsWith("reject.txt")) {
      await bridge.request("review/reject", { review: id });
      return;
    }
    const texts = await bridge.request("review/get", { review: id });
    const draft = new EditedDraft(bridge, texts, { changed: () => undefined, failed: (error) => console.error(error) });
    const end = { line: 1, character: "changed 🦀".length };
    draft.editorChanged([{ start: end, end, text: " edited" }]);
    await draft.flush();
    await bridge.request("review/accept", { review: id });
    draft.close();
  });
  server.listen(socket, () => bridge.start());
}
