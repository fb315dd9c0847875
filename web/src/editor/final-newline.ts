// A mark at the end of a text without a final newline.

import { type EditorState, type Extension, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { element } from "../dom";

class Mark extends WidgetType {
  override eq(): boolean {
    return true;
  }

  toDOM(): HTMLElement {
    const text = "no newline at end of file";
    return element(
      "span",
      { class: "special special-end", "data-testid": "no-final-newline", role: "img", "aria-label": text, title: text },
      text,
    );
  }
}

const mark = Decoration.widget({ widget: new Mark(), side: 1 });

function build({ doc }: EditorState): DecorationSet {
  return doc.line(doc.lines).length > 0 ? Decoration.set(mark.range(doc.length)) : Decoration.none;
}

const field = StateField.define<DecorationSet>({
  create: build,
  update: (decorations, transaction) => (transaction.docChanged ? build(transaction.state) : decorations),
  provide: (field) => EditorView.decorations.from(field),
});

export function finalNewline(): Extension {
  return field;
}
