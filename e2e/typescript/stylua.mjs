// Checks the format of Lua files with StyLua, compiled to WebAssembly; with --write, formats them.
//
//   node stylua.mjs [--write] DIRECTORY
//
// The settings are those in DIRECTORY/.stylua.toml, so that an installed `stylua` does the same.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import * as stylua from '@johnnymorganz/stylua';

const write = process.argv[2] === '--write';
const directory = process.argv[write ? 3 : 2];

const enums = { indent_type: stylua.IndentType, quote_style: stylua.QuoteStyle };
const settings = readFileSync(join(directory, '.stylua.toml'), 'utf8');

// A new one for each file: `formatCode` consumes it.
function config() {
  const made = stylua.Config.new();
  made.syntax = stylua.LuaVersion.LuaJIT;
  for (const [, key, value] of settings.matchAll(/^(\w+) = "?(\w+)"?$/gm)) {
    made[key] = key in enums ? enums[key][value] : Number(value);
  }
  return made;
}

const files = readdirSync(directory, { recursive: true }).filter((file) => file.endsWith('.lua'));
if (files.length === 0) {
  throw new Error(`no Lua files in ${directory}`);
}
for (const file of files.map((name) => join(directory, name))) {
  const before = readFileSync(file, 'utf8');
  const after = stylua.formatCode(before, config(), undefined, stylua.OutputVerification.Full);
  if (after === before) {
    continue;
  }
  if (write) {
    writeFileSync(file, after);
  } else {
    console.log(`${file} is not formatted; run \`node e2e/typescript/stylua.mjs --write editors/neovim\``);
    process.exitCode = 1;
  }
}
