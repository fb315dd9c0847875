// What can be attached to a message: selections of the editor, and files.

import { splitPath } from "../format";
import type { OpenFile } from "../protocol";
import type { ContentBlock } from "./protocol";

/** The companion's limit for one file, in bytes. */
export const MAX_FILE = 8 * 1024 * 1024;
/** The companion's limit for the files of one message. */
export const MAX_FILES = 16;
/** The limit for the files of one message together, in bytes: they are one request. */
export const MAX_TOGETHER = 32 * 1024 * 1024;

/** An editor selection. */
export interface Selection {
  readonly kind: "selection";
  readonly path: string;
  readonly line: number | null;
  readonly text: string;
}

export interface AttachedFile {
  readonly kind: "file";
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
  /** In base 64. */
  readonly data: string;
}

export type Attachment = Selection | AttachedFile;

/** Whether agents accept it as an image. */
export function isImage(mimeType: string): boolean {
  return /^image\/(png|jpeg|gif|webp|bmp)$/.test(mimeType);
}

/** What the agent accepts. */
export interface Accepted {
  readonly images: boolean;
  readonly files: boolean;
}

/** Why a file cannot be attached to a message with these, as a sentence; `null` if it can. */
export function refusal(
  file: { name: string; type: string; size: number },
  known: readonly Attachment[],
  accepted: Accepted,
): string | null {
  const files = known.filter((attachment) => attachment.kind === "file");
  const together = files.reduce((sum, { bytes }) => sum + bytes, file.size);
  if (!(isImage(file.type) ? accepted.images : accepted.files))
    return `Not attached: this agent does not accept ${isImage(file.type) ? "images" : "files"}. Mention the path of ${file.name} instead.`;
  if (file.size === 0) return `Not attached: ${file.name} is empty.`;
  if (file.size > MAX_FILE) return `Not attached: ${file.name} is larger than 8 MB. Mention its path instead.`;
  if (files.length >= MAX_FILES) return `Not attached: ${file.name}. A message can have ${MAX_FILES} files.`;
  if (together > MAX_TOGETHER) return `Not attached: with ${file.name}, the files of this message are larger than 32 MB.`;
  return null;
}

export function readFile(file: File): Promise<AttachedFile> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(new Error(`Not attached: ${file.name} cannot be read.`));
    reader.onload = () => {
      const url = String(reader.result);
      const data = url.slice(url.indexOf(",") + 1);
      const mimeType = file.type || "application/octet-stream";
      resolve({ kind: "file", name: file.name, mimeType, bytes: file.size, data });
    };
    reader.readAsDataURL(file);
  });
}

export function fileBlock({ name, mimeType, data }: AttachedFile): ContentBlock {
  return { type: "file", name, mimeType, data };
}

/** A selection as part of a prompt: its path, and the text in a fence longer than any in it. */
export function quoted({ path, line, text }: Selection, folders: readonly string[]): string {
  const { folder, name } = splitPath(path, folders);
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  const extension = /\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1] ?? "";
  return `Selected in ${folder}${name}${line ? ` at line ${line}` : ""}:\n${fence}${extension}\n${text}\n${fence}`;
}

/** The selection in the context that agents see. */
export function selectionOf(files: readonly OpenFile[]): Selection | null {
  const file = files.find(({ selectedText }) => selectedText !== undefined && selectedText !== "");
  if (file?.selectedText === undefined) return null;
  return { kind: "selection", path: file.path, line: file.cursor?.line ?? null, text: file.selectedText };
}
