import assert from "node:assert/strict";
import { test } from "node:test";
import { matching, wantedAt } from "../src/chat/completion";
import { maybeClosed, openingFence } from "../src/chat/fence";
import { target } from "../src/chat/links";
import { blocksOf, codeOf } from "../src/chat/markdown";
import { withoutEscapes } from "../src/chat/prose";

test("only web and mail links are allowed", () => {
  assert.deepEqual(target("https://example.com/a"), { href: "https://example.com/a", shown: "example.com" });
  assert.deepEqual(target("www.example.com"), { href: "https://www.example.com/", shown: "www.example.com" });
  assert.deepEqual(target("mailto:me@example.com"), { href: "mailto:me@example.com", shown: "me@example.com" });
  for (const written of [
    "javascript:alert(1)",
    " JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "vbscript:x",
    "src/a.rs",
    "",
    "//example.com",
    "https://bank.example@evil.example/",
    "blob:https://a/b",
  ]) {
    assert.equal(target(written), null, written);
  }
});

test("lookalike host is shown in punycode", () => {
  assert.equal(target("https://ex\u0430mple.com/")?.shown, "xn--exmple-4nf.com");
});

test("open fence grows until it may be closed", () => {
  const before = "```rust\nlet a";
  const fence = openingFence(before, 0);
  assert.ok(fence);
  assert.equal(before.slice(fence.start), "let a");
  assert.equal(maybeClosed(`${before} = 1;\nlet b`, fence, before.length), false);
  assert.equal(maybeClosed(`${before} = \`x\`;`, fence, before.length), false);
  assert.equal(maybeClosed(`${before}\n\`\`\``, fence, before.length), true);
  assert.equal(maybeClosed("```rust\nlet a\n``" + "`", fence, "```rust\nlet a\n``".length), true, "the last backtick may come alone");
  assert.equal(openingFence("```rust", 0), null, "its first line is incomplete");
  assert.equal(openingFence("``` a`b\n", 0), null, "that is inline code");
  const longer = openingFence("````\n", 0);
  assert.ok(longer && !maybeClosed("````\n```\n", longer, 5));
});

test("appended text changes only the last block", () => {
  const whole =
    "# Title\n\nOne *two*\nthree\n\n- a\n- b\n\n  more of b\n\n```js\nx\n\ny\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\nlazy\n\nend";
  let before: { name: string; from: number }[] = [];
  for (let length = 1; length <= whole.length; length++) {
    const now = blocksOf(whole.slice(0, length)).map(({ name, from }) => ({ name, from }));
    assert.deepEqual(now.slice(0, before.length - 1), before.slice(0, -1), whole.slice(0, length));
    before = now;
  }
  assert.deepEqual(
    before.map(({ name }) => name),
    ["ATXHeading1", "Paragraph", "BulletList", "FencedCode", "Table", "Blockquote", "Paragraph"],
  );
});

test("code is the text between the fences", () => {
  const text = "~~~ python\na\n\n  b\n~~~";
  const block = blocksOf(text)[0];
  assert.ok(block);
  assert.deepEqual(codeOf(block, text), { info: "python", code: "a\n\n  b" });
});

test("completion starts at a leading slash and at an at sign", () => {
  assert.deepEqual(wantedAt("/co", 3), { kind: "command", from: 0, to: 3, word: "co" });
  assert.deepEqual(wantedAt("see @src/re and", 11), { kind: "file", from: 4, to: 11, word: "src/re" });
  assert.deepEqual(wantedAt("@", 1), { kind: "file", from: 0, to: 1, word: "" });
  for (const [text, cursor] of [
    ["me@example.com", 14],
    ["a /co", 5],
    ["/co x", 5],
    ["/usr/bin", 8],
    ["plain", 5],
  ] as const)
    assert.equal(wantedAt(text, cursor), null, text);
});

test("match at the start ranks higher", () => {
  const all = ["docs/areas.md", "src/area.rs", "area/x.rs", "other"].map((label) => ({ label, insert: label, about: "" }));
  assert.deepEqual(
    matching(all, "area").map(({ label }) => label),
    ["area/x.rs", "docs/areas.md", "src/area.rs"],
  );
  assert.equal(matching(all, "").length, 4);
});

test("terminal escapes are removed", () => {
  assert.equal(withoutEscapes("\u001b[32mok\u001b[0m\r\n"), "ok\n");
});
