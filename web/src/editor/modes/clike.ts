// Only these languages: a dynamic import would keep all of them.
export { cpp, csharp, kotlin, scala } from "@codemirror/legacy-modes/mode/clike";
