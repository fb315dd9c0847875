// Builds the page into dist/ (or another folder). The build is reproducible.

import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

export async function buildPage(folder) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: ["src/main.ts", "src/main.css"],
    outdir: folder,
    bundle: true,
    // Chunk names depend on input paths. Keep them the same where node_modules is a symlink.
    preserveSymlinks: true,
    splitting: true,
    format: "esm",
    target: ["es2022"],
    minify: true,
    legalComments: "none",
    charset: "utf8",
    chunkNames: "chunk-[hash]",
    logLevel: "warning",
  });
  for (const name of ["index.html", "icon.svg"]) await cp(join(import.meta.dirname, "src", name), join(folder, name));
}

if (process.argv[1] === import.meta.filename) await buildPage(join(import.meta.dirname, "dist"));
