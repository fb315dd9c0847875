// Checks the page: format, lint, types, tests, and whether dist/ matches its sources.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPage } from "./build.mjs";

function run(program, ...parameters) {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, program), ...parameters], {
    cwd: import.meta.dirname,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

async function contents(folder) {
  const names = (await readdir(folder)).sort();
  return Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))]));
}

run("node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings", ".", "../e2e/browser");
run("node_modules/typescript/bin/tsc", "--noEmit");
run("test/run.mjs");

const fresh = await mkdtemp(join(tmpdir(), "alongside-dist-"));
await buildPage(fresh);
const [wanted, found] = [await contents(fresh), await contents(join(import.meta.dirname, "dist"))];
await rm(fresh, { recursive: true });
const names = (files) => files.map(([name]) => name).join(" ");
const isSame = names(wanted) === names(found) && wanted.every(([, bytes], index) => bytes.equals(found[index][1]));
if (!isSame) {
  console.error("web/dist does not match its sources; run `npm run build` and commit it");
  process.exit(1);
}

const lock = await readFile(join(import.meta.dirname, "package-lock.json"), "utf8");
if (lock.includes('"resolved"')) {
  console.error("package-lock.json has registry URLs; remove its `resolved` fields");
  process.exit(1);
}
console.log(`The page is fine: ${found.length} files in dist/.`);
