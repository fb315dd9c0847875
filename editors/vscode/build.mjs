// Builds the extension into dist/ (or another folder). The build is reproducible. The tools and libraries are the page's.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "../../web/node_modules/esbuild/lib/main.js";

const web = join(import.meta.dirname, "..", "..", "web");

/** What the extension and its tests have in common. */
export const options = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  // Module paths must not depend on where node_modules is.
  preserveSymlinks: true,
  nodePaths: [join(web, "node_modules")],
  // Its `paths` are for types only; with them, each library would be there twice.
  tsconfigRaw: {},
  platform: "node",
  target: ["node20"],
  charset: "utf8",
  logLevel: "warning",
};

export async function buildExtension(folder) {
  await rm(folder, { recursive: true, force: true });
  await build({
    ...options,
    entryPoints: ["src/extension.ts"],
    outfile: join(folder, "extension.js"),
    format: "cjs",
    external: ["vscode"],
    minify: true,
    legalComments: "none",
  });
}

if (process.argv[1] === import.meta.filename) await buildExtension(join(import.meta.dirname, "dist"));
