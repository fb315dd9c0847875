// Reports the errors and warnings that the editor shows in files.

import * as vscode from "vscode";
import type { Companion } from "./companion";
import { Debounce } from "./debounce";
import type { Diagnostic } from "./protocol";

/** Of one file, the most severe ones; the companion has the same limit. */
const MAX_DIAGNOSTICS = 200;
const DELAY_MS = 100;

const SEVERITIES = ["error", "warning", "information", "hint"] as const;

export class Diagnostics implements vscode.Disposable {
  /** What was sent, by path. */
  private readonly sent = new Map<string, string>();
  private readonly debounce = new Debounce();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly companion: Companion) {
    companion.onGreeting(() => {
      this.sent.clear();
      for (const [uri] of vscode.languages.getDiagnostics()) this.report(uri);
    });
    this.subscription = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      for (const uri of uris) this.debounce.soon(uri.toString(), DELAY_MS, () => this.report(uri));
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.debounce.dispose();
  }

  private report(uri: vscode.Uri): void {
    if (uri.scheme !== "file") return;
    const path = uri.fsPath;
    const found = [...vscode.languages.getDiagnostics(uri)].sort((one, other) => one.severity - other.severity);
    const diagnostics = found.slice(0, MAX_DIAGNOSTICS).map(toWire);
    const now = diagnostics.length > 0 ? JSON.stringify(diagnostics) : undefined;
    if (now === this.sent.get(path)) return;
    if (now === undefined) this.sent.delete(path);
    else this.sent.set(path, now);
    this.companion.notify("context/diagnostics", { path, diagnostics });
  }
}

function toWire({ range, severity, message, source, code }: vscode.Diagnostic): Diagnostic {
  const value = typeof code === "object" ? code.value : code;
  return {
    start: { line: range.start.line + 1, character: range.start.character + 1 },
    end: { line: range.end.line + 1, character: range.end.character + 1 },
    severity: SEVERITIES[severity] ?? "error",
    message,
    ...(source === undefined ? {} : { source }),
    ...(value === undefined ? {} : { code: String(value) }),
  };
}
