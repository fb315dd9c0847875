// Runs the page's unit tests: bundles each with esbuild and runs it in Node.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const folder = await mkdtemp(join(tmpdir(), "alongside-page-"));
const tests = (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.ts"));
await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: tests,
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  logLevel: "warning",
});
const { status } = spawnSync(process.execPath, ["--test", ...tests.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")))], {
  cwd: join(import.meta.dirname, ".."),
  stdio: "inherit",
});
await rm(folder, { recursive: true });
process.exit(status ?? 1);
