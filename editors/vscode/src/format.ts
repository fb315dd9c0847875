// Formats files, agents, counts and outcomes.

import * as vscode from "vscode";
import { plain as withoutSpecial } from "../../../web/src/special-characters";
import type { Outcome, ReviewSummary } from "./protocol";

export function count(number: number, one: string): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : `${one}s`}`;
}

/** A name as it is shown: without invisible characters, and without icons. */
function plain(text: string): string {
  return withoutSpecial(text).replaceAll("$(", "$ (");
}

export function agentLabel(name: string, version?: string): string {
  return plain(version ? `${name} ${version}` : name);
}

export function fileName(path: string): string {
  return plain(path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1));
}

/** A file as it is shown: relative to its workspace folder. */
export function fileLabel(path: string): string {
  return plain(vscode.workspace.asRelativePath(vscode.Uri.file(path)));
}

export function sizeLabel({ size }: ReviewSummary): string {
  return `+${size.added} \u2212${size.removed}`;
}

const OUTCOMES: Record<Outcome, string> = {
  accepted: "accepted",
  rejected: "rejected",
  closedByAgent: "closed by the agent",
  orphaned: "dropped because the agent disconnected",
  shutDown: "rejected because the companion was shutting down",
};

export function outcomeLabel(outcome: Outcome): string {
  return OUTCOMES[outcome] ?? outcome;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
