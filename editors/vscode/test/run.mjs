// Runs the unit tests: bundles each with esbuild and runs it in Node. `ALONGSIDE_BIN` is the program for the bridge's tests.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "../../../web/node_modules/esbuild/lib/main.js";
import { options } from "../build.mjs";

const folder = await mkdtemp(join(tmpdir(), "alongside-extension-"));
const tests = (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.ts"));
await build({
  ...options,
  entryPoints: tests.map((name) => join(import.meta.dirname, name)),
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  format: "esm",
});
const { status } = spawnSync(
  process.execPath,
  ["--test", "--test-timeout=120000", ...tests.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")))],
  {
    cwd: join(import.meta.dirname, ".."),
    stdio: "inherit",
  },
);
await rm(folder, { recursive: true });
process.exit(status ?? 1);
