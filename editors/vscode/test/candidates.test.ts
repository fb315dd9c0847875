// Which programs the extension tries, and in which order.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { candidates } from "../src/candidates";
import { windowsPrograms } from "../src/windows-program";

const IS_WINDOWS = process.platform === "win32";
const NAME = IS_WINDOWS ? "alongside.exe" : "alongside";
const ON_PATH = IS_WINDOWS ? windowsPrograms(process.env["PATH"] ?? "", existsSync) : ["alongside"];

/** The directory of an extension that a program installed, and that program. */
function extension(context: TestContext): { folder: string; installer: string } {
  const folder = mkdtempSync(join(tmpdir(), "alongside-candidates-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const installer = join(folder, "installer");
  writeFileSync(installer, "");
  writeFileSync(join(folder, ".alongside-installed.json"), JSON.stringify({ program: installer }));
  return { folder, installer };
}

function bundle(folder: string): string {
  mkdirSync(join(folder, "bin"));
  const program = join(folder, "bin", NAME);
  writeFileSync(program, "", { mode: 0o755 });
  return program;
}

test("the program that installed the extension is tried before the bundled one, and that before your PATH", (context) => {
  const { folder, installer } = extension(context);
  const bundled = bundle(folder);
  assert.deepEqual(candidates(folder, ""), [installer, bundled, ...ON_PATH]);
});

test("a program that was moved is looked for on your PATH", (context) => {
  const { folder, installer } = extension(context);
  rmSync(installer);
  assert.deepEqual(candidates(folder, ""), ON_PATH);
});

test("a receipt that cannot be read is ignored", (context) => {
  const { folder } = extension(context);
  for (const receipt of ["", "null", "[]", '{"program": 1}']) {
    writeFileSync(join(folder, ".alongside-installed.json"), receipt);
    assert.deepEqual(candidates(folder, ""), ON_PATH, receipt);
  }
});

test("a path in the settings is the only one, and may begin with your home directory", (context) => {
  const { folder } = extension(context);
  bundle(folder);
  assert.deepEqual(candidates(folder, "/opt/alongside"), ["/opt/alongside"]);
  assert.deepEqual(candidates(folder, "~/bin/alongside"), [`${homedir()}/bin/alongside`]);
});
