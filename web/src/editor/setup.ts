// Extensions that both editors share.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { Hunk } from "../protocol";
import { SPECIAL } from "../special-characters";
import { hunkBlocks } from "./blocks";
import { collapse, type Gap } from "./collapse";
import { finalNewline } from "./final-newline";
import type { Layout, PlacedHunk } from "./hunks";
import { lineEndings } from "./line-endings";
import { changedLines } from "./lines";
import { markFor } from "./special";

/** Nonce that the content security policy requires for the editor's styles. */
function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>("meta[name=style-nonce]")?.content ?? "";
}

/** What an editor shows around its text from the start. */
export interface Scenery {
  readonly hunks: readonly PlacedHunk[];
  readonly layout: Layout;
  readonly current: Hunk["id"] | null;
  readonly gaps: readonly Gap[];
}

export function common({ hunks, layout, current, gaps }: Scenery): Extension {
  return [
    EditorView.cspNonce.of(styleNonce()),
    lineEndings(),
    // After the final newline there is no line, only a place for the cursor.
    lineNumbers({
      formatNumber: (number, { doc }) => (number > 1 && number === doc.lines && doc.line(number).length === 0 ? "" : String(number)),
    }),
    highlightSpecialChars({ specialChars: SPECIAL, render: (code) => markFor(String.fromCodePoint(code)) }),
    finalNewline(),
    syntaxHighlighting(classHighlighter),
    hunkBlocks(hunks, layout, current),
    collapse(gaps),
    changedLines(),
    drawSelection(),
    EditorState.tabSize.of(4),
  ];
}

export function readOnly(label: string): Extension {
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({
      "aria-label": label,
      tabindex: "-1",
      role: "textbox",
      "aria-readonly": "true",
      "aria-multiline": "true",
    }),
  ];
}

export function editable(label: string): Extension {
  return [
    history(),
    bracketMatching(),
    indentOnInput(),
    search({ top: true }),
    highlightSelectionMatches(),
    keymap.of([...historyKeymap, ...searchKeymap, ...defaultKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
  ];
}
