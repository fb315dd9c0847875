// Which `alongside` programs to try, in which order.

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { bundled } from "./bundled";
import { windowsProgram, windowsPrograms } from "./windows-program";

/** Written by `alongside install`: the program that installed this extension. */
const RECEIPT = ".alongside-installed.json";

/** The programs to try, in this order, for the directory of the extension and the path in the settings. */
export function candidates(extension: string, configured: string): string[] {
  const isWindows = process.platform === "win32";
  if (configured !== "") {
    const program = configured.replace(/^~(?=[/\\])/, homedir());
    return [isWindows ? windowsProgram(program, existsSync) : program];
  }
  const onPath = isWindows ? windowsPrograms(process.env["PATH"] ?? "", existsSync) : ["alongside"];
  return [installer(extension), bundled(extension), ...onPath].filter((program) => program !== undefined);
}

function installer(extension: string): string | undefined {
  try {
    const receipt: unknown = JSON.parse(readFileSync(join(extension, RECEIPT), "utf8"));
    const program = (receipt as { readonly program?: unknown }).program;
    return typeof program === "string" && existsSync(program) ? program : undefined;
  } catch {
    return undefined;
  }
}
