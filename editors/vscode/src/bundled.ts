// The program inside the extension's package, if it is one with the program.

import { chmodSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";

/** In the directory of the extension. */
export function bundled(extension: string): string | undefined {
  const program = join(extension, "bin", process.platform === "win32" ? "alongside.exe" : "alongside");
  if (!existsSync(program)) return undefined;
  // A package built on Windows has no permission bits.
  if (process.platform !== "win32" && (statSync(program).mode & 0o100) === 0) {
    try {
      chmodSync(program, 0o755);
    } catch {
      return undefined;
    }
  }
  return program;
}
