// Builds the page into dist/ (or another folder). The build is reproducible.

import { cp, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

/** These files define many languages, each with a function call. Marked as free of side effects, unused ones are left out. */
const modes = {
  name: "modes",
  setup({ onLoad }) {
    onLoad({ filter: /legacy-modes\/mode\/(sql|clike)\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return { contents: source.replace(/(?<==|:|=> ?) (sql|clike|set|words)\(/g, " /* @__PURE__ */ $1(") };
    });
  },
};

const options = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  // Chunk names depend on input paths. Keep them the same where node_modules is a symlink.
  preserveSymlinks: true,
  target: ["es2022"],
  minify: true,
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
  plugins: [modes],
};

export async function buildPage(folder) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    ...options,
    entryPoints: ["src/main.ts", "src/main.css"],
    outdir: folder,
    splitting: true,
    format: "esm",
    chunkNames: "chunk-[hash]",
  });
  for (const name of ["index.html", "icon.svg"]) await cp(join(import.meta.dirname, "src", name), join(folder, name));
}

/** Builds the chat for an editor's webview, as one script: chat.js and chat.css. */
export async function buildChat(folder) {
  await build({
    ...options,
    entryPoints: [
      { in: "src/webview.ts", out: "chat" },
      { in: "src/webview.css", out: "chat" },
    ],
    outdir: folder,
    format: "iife",
  });
}

if (process.argv[1] === import.meta.filename) await buildPage(join(import.meta.dirname, "dist"));
