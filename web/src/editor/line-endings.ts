// Preserves line endings. A "\r" before a line break is a character of the line (see draft.ts), shown as a mark. This extension
// makes the two behave as one line break: the cursor does not stop between them, deleting removes both, and typed or pasted
// text gets the line ending of the lines around it.

import {
  EditorSelection,
  EditorState,
  type Extension,
  Prec,
  RangeSetBuilder,
  type Text,
  Transaction,
  type TransactionSpec,
} from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { toText } from "../draft";

const atom = Decoration.mark({});

function endsWithReturn(text: Text, position: number): boolean {
  return position > 0 && position < text.length && text.sliceString(position - 1, position + 1) === "\r\n";
}

/** Whether a line break inserted here should be a CRLF: if this line has one, or else the line before it. */
function wantsReturn(text: Text, position: number): boolean {
  const line = text.lineAt(position);
  if (line.number < text.lines) return line.length > 0 && line.text.charCodeAt(line.length - 1) === 13;
  if (line.number === 1) return false;
  const before = text.line(line.number - 1);
  return before.length > 0 && text.sliceString(before.to - 1, before.to) === "\r";
}

/** The ranges between a "\r" and the start of the next line, for visible lines. */
const breaks = ViewPlugin.fromClass(
  class {
    atoms: DecorationSet;

    constructor(view: EditorView) {
      this.atoms = this.find(view);
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged) this.atoms = this.find(update.view);
    }

    find(view: EditorView): DecorationSet {
      const builder = new RangeSetBuilder<Decoration>();
      const { doc } = view.state;
      for (const { from, to } of view.visibleRanges) {
        for (let position = from; position <= to; ) {
          const line = doc.lineAt(position);
          if (line.to < doc.length && line.length > 0 && endsWithReturn(doc, line.to)) builder.add(line.to - 1, line.to + 1, atom);
          position = line.to + 1;
        }
      }
      return builder.finish();
    }
  },
  { provide: (plugin) => EditorView.atomicRanges.of((view) => view.plugin(plugin)?.atoms ?? Decoration.none) },
);

/** Inserted text gets the surrounding line ending; a deletion never separates a "\r" from its "\n". */
const adapt = EditorState.transactionFilter.of((transaction) => {
  const byHand = ["input", "delete", "move"].some((event) => transaction.isUserEvent(event));
  if (!transaction.docChanged || !byHand) return transaction;
  const before = transaction.startState.doc;
  const changes: { from: number; to: number; insert: Text }[] = [];
  let adapted = false;
  let cursor = 0;
  transaction.changes.iterChanges((from, to, _newFrom, _newTo, insert) => {
    const begin = endsWithReturn(before, from) ? from - 1 : from;
    const end = to > from && endsWithReturn(before, to) ? to - 1 : Math.max(begin, to === from ? begin : to);
    const text = insert.toString();
    const wanted = insert.lines > 1 && wantsReturn(before, begin) ? text.replace(/\r?\n/g, "\r\n") : text;
    adapted ||= begin !== from || end !== to || wanted !== text;
    changes.push({ from: begin, to: Math.max(begin, end), insert: toText(wanted) });
    cursor = Math.max(begin, end);
  });
  if (!adapted) return transaction;
  const set = transaction.startState.changes(changes);
  const spec: TransactionSpec = {
    changes: set,
    selection: EditorSelection.cursor(set.mapPos(cursor, 1)),
    scrollIntoView: transaction.scrollIntoView,
    userEvent: transaction.annotation(Transaction.userEvent) ?? "input",
  };
  return spec;
});

/** The cursor stays before the "\r" or on the next line, never between "\r" and "\n". */
const keepOut = EditorState.transactionFilter.of((transaction) => {
  if (!transaction.selection) return transaction;
  const { newDoc, newSelection } = transaction;
  const isBetween = (position: number) => endsWithReturn(newDoc, position);
  if (!newSelection.ranges.some((range) => isBetween(range.head) || isBetween(range.anchor))) return transaction;
  const move = (position: number) => (isBetween(position) ? position - 1 : position);
  const ranges = newSelection.ranges.map((range) => EditorSelection.range(move(range.anchor), move(range.head)));
  return [transaction, { selection: EditorSelection.create(ranges, newSelection.mainIndex), sequential: true }];
});

/** Only "\n" ends a line; everything else is text. */
export function lineEndings(): Extension {
  return [EditorState.lineSeparator.of("\n"), breaks, Prec.low(adapt), keepOut];
}
