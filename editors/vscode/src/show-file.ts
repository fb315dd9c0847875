// Shows files that an agent wants to show, without taking the focus.

import * as vscode from "vscode";
import type { FileTarget } from "./protocol";

export async function showFile({ path, line }: FileTarget): Promise<void> {
  const at = new vscode.Position((line ?? 1) - 1, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(path), {
    preserveFocus: true,
    preview: true,
    ...(line === undefined ? {} : { selection: new vscode.Range(at, at) }),
  });
}
