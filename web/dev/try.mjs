// Checks the page against the fake backend: node dev/try.mjs [name …]. Exits with an error if a check fails.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { openPage, startBrowser, startDesk } from "./browser.mjs";

const desk = await startDesk();
const browser = await startBrowser();
let link = 0;
const wanted = process.argv.slice(2);
let failed = 0;

async function check(name, act, options) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) return;
  const page = await openPage(browser, desk.links[link++], options);
  try {
    const report = await act(page);
    assert.deepEqual(
      page.problems.filter((problem) => !problem.includes("did not answer")),
      [],
    );
    console.log("ok  ", name, report ?? "");
  } catch (error) {
    failed++;
    console.log("FAIL", name, error);
    await page.screenshot({ path: `/tmp/failed-${failed}.png` });
  }
  await page.context().close();
}

/** Sends a request that the page does not know of. */
function call(page, method, params = {}) {
  return page.evaluate(
    ([method, params]) =>
      new Promise((resolve, reject) => {
        // On the socket that is logged in. The page ignores responses with ids that are not its own.
        const socket = window.sockets.findLast(({ readyState }) => readyState === WebSocket.OPEN);
        const listen = ({ data }) => {
          const message = JSON.parse(data);
          if (message.id !== "other") return;
          socket.removeEventListener("message", listen);
          if (message.error) reject(new Error(message.error.message));
          else resolve(message.result);
        };
        socket.addEventListener("message", listen);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id: "other", method, params }));
      }),
    [method, params],
  );
}

async function open(page, sample) {
  const { review } = await call(page, "dev/open", { sample });
  await page.click(`[data-testid=review-row][data-review="${review}"]`);
  await page.waitForSelector(`[data-testid=review][data-review="${review}"][data-armed=true]`);
  return review;
}

const draft = async (page, review) => (await call(page, "review/get", { review })).draft;
const settled = (page) => page.waitForFunction(() => document.querySelector("[data-testid=unsent]")?.hidden === true);

await check("speed of a large review", async (page) => {
  const { review } = await call(page, "dev/open", { sample: "large" });
  await page.waitForSelector(`[data-testid=review-row][data-review="${review}"]`);
  const opened = await page.evaluate(async (review) => {
    const start = performance.now();
    document.querySelector(`[data-testid=review-row][data-review="${review}"]`).click();
    while (!document.querySelector(`[data-testid=review][data-review="${review}"] [data-testid=hunk]`))
      await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve));
    return performance.now() - start;
  }, review);
  await page.waitForSelector("[data-testid=review][data-armed=true]");
  const times = [];
  for (let index = 0; index < 6; index++) {
    times.push(
      await page.evaluate(
        async (reject) => {
          const start = performance.now();
          const hunk = document.querySelector("[data-testid=hunk]");
          hunk.querySelector(`[data-testid=hunk-${reject ? "reject" : "accept"}]`).click();
          const wanted = reject ? "rejected" : "accepted";
          while (document.querySelector("[data-testid=hunk]").dataset.state !== wanted) await new Promise((resolve) => setTimeout(resolve));
          await new Promise(requestAnimationFrame);
          return performance.now() - start;
        },
        index % 2 === 0,
      ),
    );
  }
  const step = await page.evaluate(async () => {
    const start = performance.now();
    document.querySelector("[data-testid=next-hunk]").click();
    await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve));
    return performance.now() - start;
  });
  await call(page, "review/reject", { review });
  return { open: Math.round(opened), hunk: times.map(Math.round), step: Math.round(step) };
});

await check("5 MB on one line", async (page) => {
  const start = Date.now();
  const review = await open(page, "long");
  const time = Date.now() - start;
  await page.keyboard.press("s");
  await page.keyboard.press("s");
  await page.keyboard.press("r");
  await page.waitForSelector("[data-testid=hunk][data-state=rejected]");
  await page.keyboard.press("R");
  await page.waitForFunction((review) => !document.querySelector(`[data-review="${review}"]`), review);
  return { open: time };
});

await check("typed text arrives byte for byte, CRLF and BOM kept", async (page) => {
  const review = await open(page, "crlf");
  await page.keyboard.press("r");
  await page.waitForSelector("[data-testid=hunk][data-state=rejected]");
  await page.keyboard.press("e");
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("End");
  await page.keyboard.type(" me\nnext: 1");
  await settled(page);
  let text = await draft(page, review);
  assert.ok(text.startsWith("\ufeffname: build me\r\nnext: 1\r\non: [push]\r\n"), JSON.stringify(text.slice(0, 60)));
  await page.keyboard.press("Home");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Delete");
  await settled(page);
  text = await draft(page, review);
  assert.ok(text.startsWith("\ufeffname: build meext: 1\r\non: [push]\r\n"), JSON.stringify(text.slice(0, 60)));
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await settled(page);
  await page.keyboard.press("Escape");
  await page.keyboard.press("a");
  await page.waitForFunction(() => document.querySelector("[data-testid=hunk]")?.dataset.state === "accepted");
  await call(page, "review/reject", { review });
});

await check("two pages stay in sync while both type; the first decision wins", async (page) => {
  const review = await open(page, "rust");
  const other = await openPage(browser, desk.links[link++]);
  await other.click(`[data-testid=review-row][data-review="${review}"]`);
  await other.waitForSelector(`[data-testid=review][data-review="${review}"][data-armed=true]`);
  await page.keyboard.press("e");
  await other.keyboard.press("e");
  await other.keyboard.press("Control+End");
  await Promise.all([page.keyboard.type("// from the first\n", { delay: 7 }), other.keyboard.type("// from the second", { delay: 5 })]);
  await settled(page);
  await settled(other);
  await page.waitForTimeout(200);
  const text = await draft(page, review);
  assert.ok(text.startsWith("// from the first\n") && text.endsWith("// from the second"), text);
  const shown = (where) =>
    where.evaluate(
      () =>
        document.querySelector(".pane-draft .cm-content").cmTile?.view?.state?.doc?.toString() ??
        document.querySelector(".pane-draft .cm-content").cmView?.view?.state?.doc?.toString(),
    );
  if ((await shown(page)) !== undefined) {
    assert.equal(await shown(page), text);
    assert.equal(await shown(other), text);
  }
  await other.keyboard.press("Escape");
  await other.keyboard.press("A");
  await page.waitForSelector("[data-testid=review][data-over=accepted]");
  assert.match(await page.textContent("[data-testid=notice]"), /Accepted elsewhere/);
  assert.deepEqual(other.problems, []);
  await other.context().close();
});

await check("nothing decides within 400 ms, and a held key decides once", async (page) => {
  const before = await page.locator("[data-testid=review-row]").count();
  const { review } = await call(page, "dev/open", { sample: "small" });
  await page.waitForSelector(`[data-testid=review-row][data-review="${review}"]`);
  await page.evaluate((review) => document.querySelector(`[data-testid=review-row][data-review="${review}"]`).click(), review);
  await page.waitForSelector(`[data-testid=review][data-review="${review}"][data-armed=false]`);
  await page.keyboard.press("A");
  await page.keyboard.press("r");
  await page.waitForSelector(`[data-testid=review][data-review="${review}"][data-armed=true]`);
  assert.equal(await page.locator("[data-testid=review-row]").count(), before + 1);
  assert.equal(await page.locator("[data-testid=hunk][data-state=rejected]").count(), 0);
  await page.keyboard.down("A");
  for (let index = 0; index < 30; index++) await page.keyboard.down("A");
  await page.waitForTimeout(700);
  await page.keyboard.down("A");
  await page.keyboard.up("A");
  assert.equal(await page.locator("[data-testid=review-row]").count(), before);
});

await check("second review moves nothing and takes no focus", async (page) => {
  await open(page, "small");
  await page.keyboard.press("e");
  const place = () =>
    page.evaluate(() =>
      JSON.stringify([document.activeElement.className, document.querySelector("[data-testid=review]").getBoundingClientRect()]),
    );
  const before = await place();
  await call(page, "dev/open", { sample: "new" });
  await page.waitForTimeout(300);
  assert.equal(await place(), before);
});

await check("hostile proposal is only text", async (page) => {
  await open(page, "hostile");
  await page.keyboard.press("s");
  assert.equal(await page.locator("[data-testid=review] script, [data-testid=review] img:not(.cm-widgetBuffer)").count(), 0);
  assert.ok(!(await page.title()).includes("taken"));
  assert.ok((await page.locator(".special-direction").count()) >= 4);
  await page.keyboard.press("s");
});

await check("empty draft is accepted only after a confirmation", async (page) => {
  const review = await open(page, "small");
  await page.keyboard.press("e");
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await settled(page);
  await page.keyboard.press("Control+Enter");
  await page.click("[data-testid=question-yes]");
  await page.waitForFunction((review) => !document.querySelector(`[data-review="${review}"]`), review);
});

await check("change with conflicts cannot be accepted", async (page) => {
  await open(page, "conflict");
  await page.keyboard.press("A");
  await page.waitForSelector("[data-testid=notice].problem");
  await page.keyboard.press("a");
  await page.waitForFunction(() => !document.querySelector("[data-testid=hunk][data-state=conflict]"));
  await page.keyboard.press("A");
  await page.waitForTimeout(200);
});

await check("accept all changes by one agent", async (page) => {
  await page.locator("[data-testid=agent-group][data-session='41d7'] [data-testid=accept-all]").click();
  await page.click("[data-testid=question-yes]");
  await page.waitForFunction(() => !document.querySelector("[data-testid=agent-group][data-session='41d7']"));
});

await check("screen readers announce added lines as added and removed lines as removed", async (page) => {
  await open(page, "rust");
  const cdp = await page.context().newCDPSession(page);
  const lines = async () => {
    const { nodes } = await cdp.send("Accessibility.getFullAXTree");
    const byId = new Map(nodes.map((node) => [node.nodeId, node]));
    const text = (node) =>
      node.role?.value === "StaticText" ? node.name.value : (node.childIds ?? []).map((id) => text(byId.get(id) ?? {})).join("");
    const of = (role) => nodes.filter((node) => !node.ignored && node.role?.value === role).map((node) => text(node).trim());
    return {
      added: of("insertion"),
      removed: of("deletion"),
      hunks: nodes.filter(({ role }) => role?.value === "group").map(({ name }) => name?.value ?? ""),
    };
  };
  const visible = (kind) => page.$$eval(`.line-${kind}`, (all) => all.map((line) => line.textContent.trim()));
  for (const layout of ["split", "unified"]) {
    const found = await lines();
    assert.deepEqual(found.added, await visible("added"), layout);
    assert.notEqual(found.added.length, 0);
    assert.notEqual(found.removed.length, 0);
    if (layout === "split") assert.deepEqual(found.removed, await visible("removed"));
    else assert.match(found.removed[0], /^Removed:/);
    assert.ok(
      found.hunks.some((name) => /^Hunk 1 of \d+, proposed$/.test(name)),
      JSON.stringify(found.hunks),
    );
    await page.keyboard.press("s");
  }
});

await check("hunk is neutral until touched, and the button says what it will do", async (page) => {
  await open(page, "rust");
  const label = () => page.$eval("[data-testid=accept]", (button) => button.firstChild.textContent);
  const states = () => page.$$eval("[data-testid=hunk-state]", (all) => all.map((state) => state.textContent));
  const total = (await states()).length;
  assert.deepEqual(new Set(await states()), new Set(["proposed"]));
  assert.match(await label(), /^Accept all \d+ hunks$/);
  await page.keyboard.press("a");
  await page.waitForFunction(() => document.querySelector("[data-testid=hunk-state]").textContent === "accepted");
  await page.keyboard.press("r");
  await page.waitForSelector("[data-testid=hunk][data-state=rejected]");
  assert.match(await label(), /^Accept \d+ of \d+ hunks$/);
  assert.equal((await states()).filter((state) => state === "proposed").length, total - 1);
  const numbers = await page.$$eval(".cm-lineNumbers .cm-gutterElement", (all) => all.map((line) => line.textContent));
  assert.equal(numbers.at(-1), "", "no number after the last line");
});

await check("empty page says what to do next", async (page) => {
  for (const row of await page.$$eval("[data-testid=review-row]", (rows) => rows.map(({ dataset }) => Number(dataset.review))))
    await call(page, "review/reject", { review: row });
  await page.waitForSelector("[data-testid=list-empty]:visible");
  await page.reload();
  await page.waitForSelector("[data-testid=first-run]:visible");
  assert.match(await page.textContent("[data-testid=first-run]"), /alongside demo/);
});

await check("axe finds nothing in the main states", async (page) => {
  const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  const faults = [];
  const look = async (state) => {
    await page.waitForTimeout(250);
    // Not with a script element, which the content security policy forbids.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document));
    for (const { id, impact, nodes } of violations)
      faults.push(
        `${state}: ${impact} ${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.target} ${node.any.concat(node.all)[0]?.message ?? ""}`)
          .join(" | ")}`,
      );
  };
  await open(page, "rust");
  await look("split");
  await page.keyboard.press("n");
  await page.keyboard.press("r");
  await page.waitForSelector("[data-testid=hunk][data-state=rejected]");
  await page.keyboard.press("s");
  await look("unified");
  await page.emulateMedia({ colorScheme: "dark" });
  await look("dark");
  await page.keyboard.press("s");
  for (const key of ["v", "g", "d"]) {
    await page.keyboard.press(key);
    await look(`panel ${key}`);
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await look("keys");
  await page.keyboard.press("Escape");
  await open(page, "conflict");
  await look("conflict dark");
  await page.emulateMedia({ colorScheme: "light" });
  await open(page, "hostile");
  await look("hostile");
  await open(page, "crlf");
  await look("notes");
  assert.deepEqual(faults, []);
});

await check("lost connection is shown and reconnects without losing edits", async (page) => {
  const review = await open(page, "rust");
  await page.evaluate(() => {
    const Original = window.WebSocket;
    window.cut = () =>
      (window.WebSocket = class {
        static OPEN = 1;
        constructor() {
          setTimeout(() => this.onclose?.({ code: 1006 }));
        }
      });
    window.mend = () => (window.WebSocket = Original);
  });
  await page.keyboard.press("e");
  await page.keyboard.type("// before\n");
  await settled(page);
  await page.evaluate(() => {
    window.cut();
    for (const socket of window.sockets) socket.close();
  });
  await page.waitForSelector("[data-testid=connection]:visible");
  await page.keyboard.type("// while away\n");
  assert.equal(await page.isVisible("[data-testid=unsent]"), true);
  // Another client edits in the meantime.
  const other = await openPage(browser, desk.links[link++]);
  const { version } = await call(other, "review/get", { review });
  await call(other, "review/change", { review, version, changes: [{ from: 0, to: 0, insert: "// another client\n" }] });
  await other.context().close();
  await page.screenshot({ path: process.env.SHOT_LOST ?? "/tmp/lost.png" });
  await page.evaluate(() => window.mend());
  await page.waitForSelector("body[data-connection=open]");
  await settled(page);
  const text = await draft(page, review);
  assert.ok(text.startsWith("// another client\n// before\n// while away\n//! Tries"), text.slice(0, 100));
});

await browser.close();
desk.stop();
process.exit(failed > 0 ? 1 : 0);
