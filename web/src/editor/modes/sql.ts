// Only this dialect: a dynamic import would keep all of them.
export { standardSQL } from "@codemirror/legacy-modes/mode/sql";
