// Only the stable API, of the oldest supported VS Code. code-server does not notice: it allows every proposed API.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const MENUS = [
  ...["editor/title", "editor/context", "editor/lineNumber/context", "commandPalette", "view/title", "view/item/context"],
  ...["comments/commentThread/context", "comments/commentThread/title", "webview/context"],
];

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const sources = readFileSync("dist/extension.js", "utf8");

test("the manifest has only menus of the stable API", () => {
  const unknown = Object.keys(manifest.contributes.menus).filter((menu) => !MENUS.includes(menu));
  assert.deepEqual(unknown, []);
});

test("the manifest asks for no proposed API", () => {
  assert.equal(manifest.enabledApiProposals, undefined);
});

test("the types are not newer than the oldest supported VS Code", () => {
  const engine = /^\^(\d+)\.(\d+)\.\d+$/.exec(manifest.engines.vscode) ?? [];
  const types = /^(\d+)\.(\d+)\.\d+$/.exec(manifest.devDependencies["@types/vscode"]) ?? [];
  assert.deepEqual(types.slice(1, 3), engine.slice(1, 3));
  const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
  assert.equal(lock.packages["node_modules/@types/vscode"].version, manifest.devDependencies["@types/vscode"]);
});

test("there are no runtime dependencies", () => {
  assert.equal(manifest.dependencies, undefined);
});

test("every command is declared, and every declared command exists", () => {
  const declared: string[] = manifest.contributes.commands.map(({ command }: { command: string }) => command);
  const missing = declared.filter((command) => !sources.includes(`"${command}"`));
  assert.deepEqual(missing, []);
  const used = Object.values(manifest.contributes.menus).flat() as { command: string }[];
  const unknown = [...used, ...manifest.contributes.keybindings].filter(({ command }) => !declared.includes(command));
  assert.deepEqual(unknown, []);
});

test("the workspace cannot choose the program", () => {
  assert.equal(manifest.contributes.configuration.properties["alongside.path"].scope, "machine");
  assert.ok(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes("alongside.path"));
});

test("the extension's version is the program's", () => {
  const workspace = readFileSync("../../Cargo.toml", "utf8");
  assert.equal(manifest.version, /^version = "(.*)"$/m.exec(workspace)?.[1]);
});
