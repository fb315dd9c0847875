// Where the `alongside` program is.

import * as vscode from "vscode";
import { candidates } from "./candidates";

/** The programs to try, in this order. */
export function programs(extension: vscode.Uri): string[] {
  const configured = vscode.workspace.getConfiguration("alongside").get<string>("path", "").trim();
  return candidates(extension.fsPath, configured);
}
