// Where `alongside` is on Windows, tested on any system.

import assert from "node:assert/strict";
import { test } from "node:test";
import { windowsProgram, windowsPrograms } from "../src/windows-program";

const PACKAGE = "@alongside-ide\\win32-x64\\bin\\alongside.exe";
const NPM = "C:\\Users\\Ada\\AppData\\Roaming\\npm";

function among(...files: string[]): (path: string) => boolean {
  return (path) => files.includes(path);
}

test("npm's command stands for the program in its package, nested or hoisted", () => {
  for (const below of ["node_modules\\alongside-ide\\node_modules", "node_modules"]) {
    const program = `${NPM}\\${below}\\${PACKAGE}`;
    const exists = among(`${NPM}\\alongside.cmd`, program);
    assert.deepEqual(windowsPrograms(`C:\\Windows;${NPM}`, exists), [program]);
    assert.equal(windowsProgram(`${NPM}\\alongside.cmd`, exists), program);
    assert.equal(windowsProgram(`${NPM}\\alongside`, exists), program);
  }
});

test("a project's command stands for the program in its packages", () => {
  const program = `C:\\p\\node_modules\\${PACKAGE}`;
  const exists = among("C:\\p\\node_modules\\.bin\\alongside.cmd", program);
  assert.equal(windowsProgram("C:\\p\\node_modules\\.bin\\alongside.cmd", exists), program);
});

test("the first directory on the PATH wins", () => {
  const program = `${NPM}\\node_modules\\${PACKAGE}`;
  const exists = among(`${NPM}\\alongside.cmd`, program, "D:\\py\\Scripts\\alongside.exe");
  assert.deepEqual(windowsPrograms(`"D:\\py\\Scripts";${NPM};${NPM}`, exists), ["D:\\py\\Scripts\\alongside.exe", program]);
});

test("the working directory is not searched", () => {
  assert.deepEqual(
    windowsPrograms(".;;relative;C:drive", () => true),
    [],
  );
});

test("a path that is not npm's command stays as it is", () => {
  const exists = among("C:\\a\\alongside.exe", "C:\\a\\other.cmd");
  for (const path of ["C:\\a\\alongside.exe", "C:\\a\\other.cmd", "C:\\a\\missing"]) assert.equal(windowsProgram(path, exists), path);
});
