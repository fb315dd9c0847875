// Formats paths, ages, counts and outcomes.

import type { ConnectedSession } from "./chat/protocol";
import type { Outcome } from "./protocol";
import { plain } from "./special-characters";

export { plain };

/** An agent as it is shown: its name and, if known, its version. */
export function agentLabel(name: string, version?: string): string {
  return version ? `${name} ${version}` : name;
}

export function sessionLabel({ agent, agentVersion, locality }: ConnectedSession): string {
  return agentLabel(agent, agentVersion) + (locality.where === "daemon" ? " (daemon)" : "");
}

export function splitPath(path: string, folders: readonly string[]): { folder: string; name: string } {
  let shown = path;
  for (const folder of folders) {
    const prefix = folder.endsWith("/") ? folder : `${folder}/`;
    if (path.startsWith(prefix)) {
      shown = path.slice(prefix.length);
      break;
    }
  }
  const end = Math.max(shown.lastIndexOf("/"), shown.lastIndexOf("\\")) + 1;
  return { folder: plain(shown.slice(0, end)), name: plain(shown.slice(end)) };
}

export function age(since: number, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - since) / 1000));
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

export function count(number: number, one: string, many: string = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function outcome(outcome: Outcome): string {
  switch (outcome) {
    case "accepted":
      return "Accepted elsewhere.";
    case "rejected":
      return "Rejected elsewhere.";
    case "closedByAgent":
      return "Closed by the agent.";
    case "orphaned":
      return "The agent disconnected.";
    case "shutDown":
      return "The companion shut down.";
  }
}

/** A size in bytes, rounded. */
export function formatSize(bytes: number): string {
  if (bytes < 1000) return count(bytes, "byte");
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
