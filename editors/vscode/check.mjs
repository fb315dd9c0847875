// Checks the extension: format, lint, types, tests, and whether dist/ matches its sources. `ALONGSIDE_BIN` is the program for the tests.

import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExtension } from "./build.mjs";

function run(program, ...parameters) {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, program), ...parameters], {
    cwd: import.meta.dirname,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

const tools = "../../web/node_modules";
run(`${tools}/@biomejs/biome/bin/biome`, "ci", "--error-on-warnings", ".");
run(`${tools}/typescript/bin/tsc`, "--noEmit");

const fresh = await mkdtemp(join(tmpdir(), "alongside-dist-"));
await buildExtension(fresh);
const [wanted, found] = await Promise.all(
  [fresh, join(import.meta.dirname, "dist")].map((folder) => readFile(join(folder, "extension.js"))),
);
await rm(fresh, { recursive: true });
if (!wanted.equals(found)) {
  console.error("editors/vscode/dist does not match its sources; run `npm run build` and commit it");
  process.exit(1);
}

const lock = await readFile(join(import.meta.dirname, "package-lock.json"), "utf8");
if (lock.includes('"resolved"')) {
  console.error("package-lock.json has registry URLs; remove its `resolved` fields");
  process.exit(1);
}

run("test/run.mjs");
console.log(`The extension is fine: ${found.length} bytes in dist/.`);
