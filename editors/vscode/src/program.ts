// Where the `alongside` program is.

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { bundled } from "./bundled";
import { windowsProgram, windowsPrograms } from "./windows-program";

/** Written by `alongside install`: the program that installed this extension. */
const RECEIPT = ".alongside-installed.json";

/** The programs to try, in this order. */
export function programs(extension: vscode.Uri): string[] {
  const configured = vscode.workspace.getConfiguration("alongside").get<string>("path", "").trim();
  const isWindows = process.platform === "win32";
  if (configured !== "") {
    const program = configured.replace(/^~(?=[/\\])/, homedir());
    return [isWindows ? windowsProgram(program, existsSync) : program];
  }
  const onPath = isWindows ? windowsPrograms(process.env["PATH"] ?? "", existsSync) : ["alongside"];
  return [installer(extension), bundled(extension.fsPath), ...onPath].filter((program) => program !== undefined);
}

function installer(extension: vscode.Uri): string | undefined {
  try {
    const receipt: unknown = JSON.parse(readFileSync(join(extension.fsPath, RECEIPT), "utf8"));
    const program = (receipt as { readonly program?: unknown }).program;
    return typeof program === "string" && existsSync(program) ? program : undefined;
  } catch {
    return undefined;
  }
}
