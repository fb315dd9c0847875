// Where `alongside` is on Windows. Node starts only .exe files there, and searches the working directory before the PATH.

import { win32 } from "node:path";

type Exists = (path: string) => boolean;

/** Below the directory with npm's `alongside.cmd`: the program's package, in the one that was installed or next to it. */
const NPM = [
  "node_modules/alongside-ide/node_modules/@alongside-ide/win32-x64/bin/alongside.exe",
  "node_modules/@alongside-ide/win32-x64/bin/alongside.exe",
];
/** The same for a project's own packages, with the command in `node_modules/.bin`. */
const NPM_LOCAL = [
  "../alongside-ide/node_modules/@alongside-ide/win32-x64/bin/alongside.exe",
  "../@alongside-ide/win32-x64/bin/alongside.exe",
];

/** The programs that the PATH leads to, in its order. */
export function windowsPrograms(path: string, exists: Exists): string[] {
  const directories = path.split(";").map((directory) => directory.replaceAll('"', "").trim());
  const found = directories
    .filter(isAbsolute)
    .flatMap((directory) => [win32.join(directory, "alongside.exe"), ...ofNpm(win32.join(directory, "alongside.cmd"), exists)]);
  return [...new Set(found.filter(exists))];
}

/** What to start for a path in the settings: for npm's command, the program behind it. */
export function windowsProgram(path: string, exists: Exists): string {
  const command = /[\\/]alongside(\.cmd)?$/i.exec(path);
  if (!command) return path;
  return ofNpm(command[1] === undefined ? `${path}.cmd` : path, exists)[0] ?? path;
}

function ofNpm(command: string, exists: Exists): string[] {
  if (!exists(command)) return [];
  const directory = win32.dirname(command);
  return [...NPM, ...NPM_LOCAL].map((below) => win32.join(directory, below)).filter(exists);
}

function isAbsolute(path: string): boolean {
  return /^([a-z]:[\\/]|[\\/]{2})/i.test(path);
}
