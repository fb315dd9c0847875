// The program inside the package: `package.mjs` puts it where the extension looks for it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { bundled } from "../src/bundled";

const NAME = process.platform === "win32" ? "alongside.exe" : "alongside";

/** The directory of an extension with the program, which nothing may run yet. */
function extension(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "alongside-bundled-"));
  context.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin", NAME), "", { mode: 0o644 });
  return folder;
}

test("the bundled program is found and made executable", (context) => {
  const folder = extension(context);
  const program = bundled(folder);
  assert.equal(program, join(folder, "bin", NAME));
  if (process.platform !== "win32") assert.equal(statSync(program).mode & 0o777, 0o755);
});

test("a package without the program has none", () => {
  assert.equal(bundled(import.meta.dirname), undefined);
});

test("the package has the program where the extension looks for it", (context) => {
  const folder = extension(context);
  const program = bundled(folder) ?? "";
  const out = join(folder, "packed.vsix");
  const target = `${process.platform}-x64`;
  const { status, stderr } = spawnSync(process.execPath, ["package.mjs", "--program", program, "--target", target, "--out", out]);
  assert.equal(status, 0, String(stderr));
  const name = `extension/${relative(folder, program).replaceAll("\\", "/")}`;
  assert.ok(readFileSync(out).includes(name), name);
});
