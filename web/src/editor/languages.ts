// Languages by file name, each loaded on first use.

import { LanguageSupport, StreamLanguage, type StreamParser } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

type Load = () => Promise<Extension>;

const legacy = (load: () => Promise<StreamParser<unknown>>): Load => {
  return async () => new LanguageSupport(StreamLanguage.define(await load()));
};

const javascript = (typescript: boolean, jsx: boolean): Load => {
  return async () => (await import("@codemirror/lang-javascript")).javascript({ typescript, jsx });
};

const shell = legacy(async () => (await import("@codemirror/legacy-modes/mode/shell")).shell);
// The parser with a syntax tree has 33 KB compressed; this one is shared with the other languages of the family.
const cpp = legacy(async () => (await import("./modes/clike")).cpp as StreamParser<unknown>);
const yaml: Load = async () => (await import("@codemirror/lang-yaml")).yaml();
const html: Load = async () => (await import("@codemirror/lang-html")).html();
const xml = legacy(async () => (await import("@codemirror/legacy-modes/mode/xml")).xml);
const ruby = legacy(async () => (await import("@codemirror/legacy-modes/mode/ruby")).ruby as StreamParser<unknown>);

const loaders: Record<string, Load> = {
  js: javascript(false, true),
  ts: javascript(true, false),
  tsx: javascript(true, true),
  python: async () => (await import("@codemirror/lang-python")).python(),
  rust: async () => (await import("@codemirror/lang-rust")).rust(),
  go: async () => (await import("@codemirror/lang-go")).go(),
  java: async () => (await import("@codemirror/lang-java")).java(),
  cpp,
  html,
  xml,
  yaml,
  shell,
  ruby,
  css: async () => (await import("@codemirror/lang-css")).css(),
  json: async () => (await import("@codemirror/lang-json")).json(),
  markdown: async () => (await import("@codemirror/lang-markdown")).markdown(),
  toml: legacy(async () => (await import("@codemirror/legacy-modes/mode/toml")).toml as StreamParser<unknown>),
  csharp: legacy(async () => (await import("./modes/clike")).csharp as StreamParser<unknown>),
  kotlin: legacy(async () => (await import("./modes/clike")).kotlin as StreamParser<unknown>),
  scala: legacy(async () => (await import("./modes/clike")).scala as StreamParser<unknown>),
  swift: legacy(async () => (await import("@codemirror/legacy-modes/mode/swift")).swift as StreamParser<unknown>),
  lua: legacy(async () => (await import("@codemirror/legacy-modes/mode/lua")).lua as StreamParser<unknown>),
  sql: legacy(async () => (await import("./modes/sql")).standardSQL as StreamParser<unknown>),
  docker: legacy(async () => (await import("@codemirror/legacy-modes/mode/dockerfile")).dockerFile as StreamParser<unknown>),
};

const extensions: Record<string, string> = {
  js: "js",
  mjs: "js",
  cjs: "js",
  jsx: "js",
  ts: "ts",
  mts: "ts",
  cts: "ts",
  tsx: "tsx",
  py: "python",
  pyi: "python",
  rs: "rust",
  go: "go",
  java: "java",
  c: "cpp",
  h: "cpp",
  cc: "cpp",
  cpp: "cpp",
  cxx: "cpp",
  hpp: "cpp",
  hh: "cpp",
  ino: "cpp",
  html: "html",
  htm: "html",
  vue: "html",
  svelte: "html",
  xml: "xml",
  svg: "xml",
  plist: "xml",
  csproj: "xml",
  css: "css",
  scss: "css",
  less: "css",
  json: "json",
  jsonc: "json",
  json5: "json",
  webmanifest: "json",
  md: "markdown",
  markdown: "markdown",
  mdx: "markdown",
  yaml: "yaml",
  yml: "yaml",
  toml: "toml",
  sh: "shell",
  bash: "shell",
  zsh: "shell",
  ksh: "shell",
  fish: "shell",
  rb: "ruby",
  rake: "ruby",
  gemspec: "ruby",
  lua: "lua",
  sql: "sql",
  swift: "swift",
  cs: "csharp",
  kt: "kotlin",
  kts: "kotlin",
  scala: "scala",
  gradle: "kotlin",
  dockerfile: "docker",
};

const names: Record<string, string> = {
  dockerfile: "docker",
  gemfile: "ruby",
  rakefile: "ruby",
  ".bashrc": "shell",
  ".zshrc": "shell",
  ".profile": "shell",
  ".bash_profile": "shell",
  "cargo.lock": "toml",
  ".gitconfig": "toml",
  ".eslintrc": "json",
  ".prettierrc": "json",
};

/** Language names as used after code fences, where they are not file extensions. */
const aliases: Record<string, string> = {
  javascript: "js",
  typescript: "ts",
  golang: "go",
  "c++": "cpp",
  "c#": "csharp",
  console: "shell",
  shellsession: "shell",
  makefile: "shell",
};

/** The language of a file; `null` if unknown or if loading fails. */
export async function languageOf(path: string): Promise<Extension | null> {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).toLowerCase();
  const extension = name.slice(name.lastIndexOf(".") + 1);
  return load(names[name] ?? extensions[extension]);
}

/** The language with this name, as written after a code fence. */
export async function languageNamed(name: string): Promise<Extension | null> {
  const word = name.toLowerCase();
  return load(aliases[word] ?? (Object.hasOwn(loaders, word) ? word : extensions[word]));
}

async function load(language: string | undefined): Promise<Extension | null> {
  const loader = language === undefined ? undefined : loaders[language];
  try {
    return loader ? await loader() : null;
  } catch (error) {
    console.warn("The language could not be loaded.", error);
    return null;
  }
}
