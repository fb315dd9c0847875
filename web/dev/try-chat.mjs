// Checks the chat against the fake backend: node dev/try-chat.mjs [name …]. Exits with an error if a check fails.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { openPage, startBrowser, startDesk } from "./browser.mjs";

const browser = await startBrowser();
const wanted = process.argv.slice(2);
let failed = 0;

/** Each check has its own desk, because all pages of a desk share one conversation. */
async function check(name, act, options) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) return;
  const desk = await startDesk();
  let link = 0;
  const open = async (more) => {
    const page = await openPage(browser, desk.links[link++], more ?? options);
    await page.click("[data-testid=view-chat]");
    return page;
  };
  const page = await open();
  try {
    const report = await act(page, open);
    assert.deepEqual(
      page.problems.filter((problem) => !problem.includes("did not answer")),
      [],
    );
    console.log("ok  ", name, report ?? "");
  } catch (error) {
    failed++;
    console.log("FAIL", name, error);
    await page.screenshot({ path: `/tmp/failed-chat-${failed}.png` });
  }
  for (const context of browser.contexts()) await context.close();
  desk.stop();
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

const TOOL = {
  id: "x",
  title: "Run it",
  kind: "execute",
  status: "pending",
  toolName: null,
  input: null,
  output: null,
  locations: [],
  content: [],
};
const REQUEST = {
  requestId: "x",
  promptId: null,
  toolCall: TOOL,
  options: [{ optionId: "a", name: "Allow", kind: "allow_once" }],
  questions: [],
};

const at = (testId) => `[data-testid=${testId}]`;
const connect = async (page, agent = "qwen") => {
  await page.click(`${at("choose-agent")}[data-agent=${agent}]`);
  await page.waitForSelector(`${at("locality")}:visible`);
};
const say = async (page, text) => {
  await page.fill(at("prompt"), text);
  await page.press(at("prompt"), "Enter");
  await page.waitForFunction(() => document.querySelector("[data-testid=prompt]").value === "");
};
const idle = (page) => page.waitForFunction(() => document.querySelector("[data-testid=composer]").dataset.turn === "none");
const answer = (page) => page.$$eval(at("answer"), (answers) => answers.map((one) => one.textContent).join("|"));
const focused = (page) => page.evaluate(() => document.activeElement.dataset.testid ?? document.activeElement.tagName);
const chunk = (text) => ({ type: "assistantChunk", promptId: null, content: { type: "text", text } });

await check("answer streams, with highlighted code that can be copied", async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await connect(page);
  await say(page, "hello");
  await page.waitForSelector("text=All four tests pass");
  await page.waitForSelector(`${at("code")} .tok-keyword`);
  assert.equal(await focused(page), "prompt");
  await page.click(at("copy-code"));
  await page.waitForSelector("text=Copied");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^pub struct Policy \{\n {4}pub attempts/);
  assert.equal(await page.$$eval(`${at("answer")} tbody td`, (cells) => cells.length), 6);
  assert.equal(await page.$eval(at("tool-output"), (fold) => fold.open), false);
});

await check("streamed answer looks the same as a loaded one", async (page, open) => {
  await connect(page);
  await say(page, "hello");
  await page.waitForSelector("text=All four tests pass");
  await page.waitForSelector(`${at("code")} .tok-keyword`);
  const other = await open();
  await other.waitForSelector(`${at("code")} .tok-keyword`);
  const shape = (where) => where.$eval(".items", (items) => items.innerHTML.replace(/ open=""/g, ""));
  assert.equal(await shape(other), await shape(page));
});

await check("approval is answered with a key, or shown as answered elsewhere", async (page, open) => {
  await connect(page);
  const other = await open();
  await say(page, "ask");
  await page.waitForSelector(`${at("approval")}[data-armed=true]`);
  assert.deepEqual(await page.$$eval(at("option"), (options) => options.map((option) => option.dataset.option)), [
    "proceed_once",
    "proceed_always",
    "cancel",
  ]);
  assert.equal(await focused(page), "prompt", "the focus stays");
  await other.waitForSelector(at("approval"));
  await page.waitForSelector(`${at("diff")} ${at("hunk")}`);
  assert.equal(await page.isVisible(`${at("diff")} ${at("hunk-accept")}`), false);
  await page.keyboard.press("Alt+1");
  await page.waitForSelector(`${at("answered")}:text-is('You chose: Yes, allow once')`);
  await other.waitForSelector(at("answered"));
  await call(page, "dev/chat", {
    events: [
      {
        type: "approvalOpened",
        request: REQUEST,
      },
    ],
  });
  await page.waitForSelector(at("approval"));
  await call(page, "dev/chat", { events: [{ type: "approvalClosed", requestId: "x", optionId: "a", own: false }] });
  await page.waitForSelector(`${at("answered")}:text-is('Answered elsewhere: Allow')`);
  assert.equal(await page.$(at("approval")), null);
});

await check("questions take one answer, several, or another", async (page) => {
  await connect(page);
  await say(page, "question");
  await page.waitForSelector(`${at("approval")}[data-armed=true]`);
  await page.click(`${at("option")}[data-option=proceed_once]`);
  assert.match(await page.textContent(at("answer-note")), /Answer every question first/);
  await page.check("text=250 ms");
  await page.check("text=each attempt");
  await page.fill(`${at("chat-question")}:nth-of-type(2) ${at("question-other")}`, "the reason");
  await page.click(`${at("option")}[data-option=proceed_once]`);
  await page.waitForSelector("text=You answered: 250 ms; each attempt, the reason");
  assert.deepEqual(await page.$$eval(at("answered-question"), (lines) => lines.map((line) => line.textContent)), [
    "Which wait should it start with? 250 ms",
    "What shall be written to the log? each attempt, the reason",
  ]);
});

await check("rejection is not shown as an error", async (page) => {
  await connect(page);
  await say(page, "ask");
  await page.waitForSelector(`${at("approval")}[data-armed=true]`);
  const keys = () =>
    page.$$eval(`${at("option")}:first-child kbd`, (all) => all.filter((key) => key.offsetWidth > 0).map((key) => key.textContent));
  assert.deepEqual(await keys(), ["Alt 1"], "while typing");
  await page.focus(at("log"));
  assert.deepEqual(await keys(), ["1"], "otherwise");
  await page.keyboard.press("3");
  await page.waitForSelector(`${at("tool")}[data-approval=closed]`);
  await call(page, "dev/chat", {
    events: [
      { type: "toolCall", promptId: null, call: { ...TOOL, id: await page.getAttribute(at("tool"), "data-call"), status: "failed" } },
    ],
  });
  await page.waitForSelector(`${at("tool")}[data-status=rejected]`);
  assert.doesNotMatch(await page.textContent(at("tool")), /\u2715|failed/);
});

await check("request that the agent forgot has no buttons, and says so", async (page) => {
  await connect(page, "daemon");
  const history = [
    { type: "promptAccepted", promptId: "p", text: "Run it" },
    { type: "toolCall", promptId: "p", call: TOOL },
  ];
  await call(page, "dev/chat", {
    events: [...history, { type: "turnStarted", promptId: "p" }, { type: "approvalOpened", request: REQUEST }],
  });
  await page.waitForSelector(at("approval"));
  await call(page, "dev/chat", {
    events: [{ type: "historyStart", reason: "session_reopened" }, ...history, { type: "historyEnd" }],
  });
  await page.waitForSelector(`${at("answered")}:has-text("The agent stopped before this was answered.")`);
  assert.equal(await page.$(at("option")), null);
  await page.reload();
  await page.waitForSelector(`${at("tool")}[data-status=stopped]`);
  assert.equal(await page.$(at("option")), null);
});

await check("nothing looks alive while the companion cannot be reached", async (page) => {
  await connect(page);
  await say(page, "ask");
  await page.waitForSelector(`${at("approval")}[data-armed=true]`);
  await page.evaluate(() => {
    window.NormalWebSocket = window.WebSocket;
    window.WebSocket = class {
      static OPEN = 1;
      constructor() {
        setTimeout(() => this.onclose({ code: 1006 }), 10);
      }
    };
    for (const socket of window.sockets) socket.close();
  });
  await page.waitForSelector("body[data-connection=lost]");
  assert.equal(await page.textContent(at("phase")), "companion unreachable");
  assert.equal(await page.isVisible(at("stop")), false);
  assert.equal(await page.textContent(at("send")), "Send");
  assert.equal(await page.getAttribute(at("send"), "aria-disabled"), "true");
  assert.equal(await page.getAttribute(at("option"), "aria-disabled"), "true");
  assert.equal(await page.textContent(at("status")), "");
  await page.fill(at("prompt"), "question later");
  await page.press(at("prompt"), "Enter");
  await page.waitForSelector(`${at("retry")}:visible`);
  const [banner, box] = [await page.locator(at("connection")).boundingBox(), await page.locator(at("composer")).boundingBox()];
  assert.ok(banner.y + banner.height <= box.y, "the banner does not cover the message box");
  assert.equal(await page.textContent(at("status")), "Not sent. Cannot reach the companion. Your message is kept.");
  await page.evaluate(() => {
    window.WebSocket = window.NormalWebSocket;
  });
  await page.click(at("reconnect"));
  await page.waitForSelector("body[data-connection=open]");
  assert.equal(await page.getAttribute(at("option"), "aria-disabled"), "false");
  await page.click(at("retry"));
  await page.waitForSelector(at("queued"));
  assert.equal(await page.isVisible(at("retry")), false);
  assert.doesNotMatch(await page.textContent(at("status")), /Not sent/);
});

await check("agent that waits for a review is not working", async (page) => {
  await connect(page);
  await say(page, "slow");
  await page.waitForSelector(`${at("status")}:has-text("Working")`);
  const { review } = await call(page, "dev/open", { sample: "rust" });
  await page.evaluate((id) => {
    const socket = window.sockets.findLast(({ readyState }) => readyState === WebSocket.OPEN);
    const size = { added: 1, removed: 0 };
    const params = {
      id,
      path: "/w/a.rs",
      agent: "Qwen Code",
      session: "chat-1",
      revision: 1,
      version: 1,
      newFile: false,
      edited: false,
      size,
      conflicts: 0,
      opened: 1,
    };
    socket.onmessage({ data: JSON.stringify({ method: "review/changed", params }) });
  }, review);
  await page.waitForSelector(`${at("status")}:text-is("Waiting for your review")`);
});

await check(
  "nothing is cut off at 390 pixels",
  async (page) => {
    await connect(page, "daemon");
    await say(page, "ask");
    await page.waitForSelector(`${at("approval")}[data-armed=true]`);
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll(".top *, .chat-bar *, .locality *, .chat-foot *, .options *")]
        .filter((part) => part.offsetWidth > 0 && getComputedStyle(part).clipPath === "none")
        .filter(
          (part) =>
            part.getBoundingClientRect().right > innerWidth + 0.5 ||
            part.getBoundingClientRect().left < -0.5 ||
            part.scrollWidth > part.clientWidth + 1,
        )
        .filter((part) => getComputedStyle(part).display !== "inline")
        .map((part) => `${part.tagName} ${part.className} ${part.textContent}`.slice(0, 90)),
    );
    assert.deepEqual(cut, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  },
  { viewport: { width: 390, height: 780 } },
);

await check("prompts are queued and removed, and Escape cancels", async (page) => {
  await connect(page);
  await say(page, "slow");
  await page.waitForSelector(`${at("stop")}:visible`);
  await say(page, "second");
  await say(page, "third");
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=queued]").length === 2);
  await page.click(`${at("queued")} ${at("unqueue")} >> nth=0`);
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=queued]").length === 1);
  await page.focus(at("prompt"));
  await page.keyboard.press("Escape");
  await page.waitForSelector("text=Cancelled.");
  await page.waitForSelector("text=All four tests pass");
  assert.deepEqual(await page.$$eval(at("user"), (messages) => messages.map((one) => one.textContent)), ["slow", "third"]);
});

await check("conversation follows the end only while at the end", async (page) => {
  await connect(page);
  await say(page, "slow");
  await call(page, "dev/chat", { events: Array.from({ length: 60 }, (_, number) => chunk(`line ${number}\n\n`)) });
  await page.waitForSelector(`${at("log")}[data-at-end=true]`);
  const top = () => page.$eval(at("log"), (log) => log.scrollTop);
  const distance = () => page.$eval(at("log"), (log) => log.scrollHeight - log.scrollTop - log.clientHeight);
  assert.ok((await top()) > 300 && (await distance()) < 3);
  await page.$eval(at("log"), (log) => (log.scrollTop = 200));
  await page.waitForSelector(`${at("to-end")}:visible`);
  await call(page, "dev/chat", { events: Array.from({ length: 20 }, (_, number) => chunk(`more ${number}\n\n`)) });
  await page.waitForSelector("text=more 19");
  assert.equal(await top(), 200);
  await page.click(at("to-end"));
  await page.waitForSelector(`${at("log")}[data-at-end=true]`);
  assert.ok((await distance()) < 3);
});

await check("lost connection and gap neither lose nor double text", async (page) => {
  await connect(page);
  await say(page, "slow");
  await page.waitForSelector(at("answer"));
  for (let round = 0; round < 3; round++) {
    await page.waitForTimeout(200);
    await page.fill(at("prompt"), `half a thought ${round}`);
    await page.evaluate(() => {
      for (const socket of window.sockets) socket.close();
    });
    await page.waitForSelector("body[data-connection=lost]");
    await page.waitForSelector("body[data-connection=open]");
    assert.equal(await page.inputValue(at("prompt")), `half a thought ${round}`);
  }
  await call(page, "dev/chatMiss", { event: chunk(" (missed) ") });
  await page.waitForSelector("text=(missed)");
  await page.keyboard.press("Escape");
  await page.waitForSelector("text=Cancelled.");
  const state = await call(page, "chat/state");
  const logged = state.events
    .filter(({ type }) => type === "assistantChunk")
    .map(({ content }) => content.text)
    .join("");
  assert.equal((await answer(page)).replace(/\s+/g, " ").trim(), logged.replace(/\s+/g, " ").trim());
});

await check("message sent while offline is kept and sent once", async (page) => {
  await connect(page);
  await page.fill(at("prompt"), "question now");
  await page.evaluate(() => {
    for (const socket of window.sockets) socket.close();
  });
  await page.press(at("prompt"), "Enter");
  await page.waitForSelector("body[data-connection=open]");
  await page.waitForSelector(`${at("status")}:has-text("is kept")`);
  assert.equal(await page.inputValue(at("prompt")), "question now");
  await page.press(at("prompt"), "Enter");
  await page.waitForSelector(at("approval"));
  // This time it arrives, but the companion's response does not.
  await page.evaluate(() => {
    const socket = window.sockets.findLast(({ readyState }) => readyState === WebSocket.OPEN);
    socket.onmessage = () => setTimeout(() => socket.close(), 100);
  });
  await page.fill(at("prompt"), "second");
  await page.press(at("prompt"), "Enter");
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=queued]").length === 1);
  await page.waitForFunction(() => document.querySelector("[data-testid=prompt]").value === "");
  const { events } = await call(page, "chat/state");
  assert.deepEqual(
    events.filter(({ type }) => type === "promptAccepted").map(({ text }) => text),
    ["question now", "second"],
  );
});

await check("message, attachment and view survive a reload", async (page) => {
  await connect(page);
  await page.keyboard.press("Alt+s");
  await page.waitForSelector(at("attachment"));
  await page.fill(at("prompt"), "two\nlines");
  await page.goto(page.url().replace(/#.*/, ""));
  await page.waitForSelector("body[data-connection=open][data-view=chat]");
  assert.equal(await page.inputValue(at("prompt")), "two\nlines");
  assert.equal(await page.$$eval(at("attachment"), (chips) => chips.length), 1);
  await page.click(at("detach"));
  await page.waitForFunction(() => !document.querySelector("[data-testid=attachment]"));
});

await check("commands and files are completed with the keyboard", async (page) => {
  await connect(page);
  await page.focus(at("prompt"));
  await page.keyboard.type("/me");
  await page.waitForSelector(at("completion-item"));
  await page.keyboard.press("Enter");
  assert.equal(await page.inputValue(at("prompt")), "/memory ");
  await page.fill(at("prompt"), "");
  await page.keyboard.type("see @ret");
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=completion-item]").length === 2);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  assert.equal(await page.inputValue(at("prompt")), "see @tests/retry.rs ");
  await page.keyboard.type("@re");
  await page.waitForSelector(at("completion-item"));
  await page.keyboard.press("Escape");
  await page.waitForSelector(at("completion"), { state: "hidden" });
  assert.equal(await focused(page), "prompt");
});

await check("model and mode change when the agent confirms", async (page) => {
  await connect(page);
  assert.equal(await page.$eval(at("model"), (select) => select.dataset.current), "coder-plus");
  await page.selectOption(at("model"), "coder-flash");
  await page.waitForSelector(`${at("model")}[data-current=coder-flash]`);
  await page.selectOption(at("model"), "broken");
  await page.waitForSelector("text=This model does not answer.");
  assert.equal(await page.inputValue(at("model")), "coder-flash");
  await page.selectOption(at("mode"), "plan");
  await page.waitForSelector(`${at("mode")}[data-current=plan]`);
});

await check("no key decides a review in the chat", async (page) => {
  await connect(page);
  await page.focus(at("log"));
  for (const key of ["A", "R", "a", "r", "Control+Enter", "F8", "Shift+F8"]) await page.keyboard.press(key);
  await page.waitForTimeout(500);
  assert.equal((await call(page, "review/list")).length, 5);
  const before = await call(page, "review/get", { review: 1 });
  assert.ok(before.hunks.every(({ state }) => state === "accepted"));
  await page.keyboard.press("c");
  await page.waitForSelector("body[data-view=reviews]");
  assert.ok(page.url().endsWith("#reviews"));
  await page.keyboard.press("Alt+c");
  await page.waitForSelector("body[data-view=chat]");
  assert.equal(await focused(page), "prompt");
});

await check("hostile answer is only text", async (page) => {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await connect(page);
  await say(page, "hostile");
  await idle(page);
  await page.waitForSelector(`${at("answer")} a[href='https://www.example.com/']`);
  assert.ok(!(await page.title()).includes("taken"));
  assert.equal(await page.$(`${at("answer")} script, ${at("answer")} img, ${at("answer")} b`), null);
  assert.deepEqual(await page.$$eval(`${at("answer")} a`, (links) => links.map((link) => `${link.getAttribute("href")} ${link.rel}`)), [
    "https://example.com/a?b=c noopener noreferrer",
    "https://evil.example/pixel.png noopener noreferrer",
    "https://www.example.com/ noopener noreferrer",
    "mailto:me@example.com noopener noreferrer",
  ]);
  assert.equal(await page.$$eval(at("no-link"), (links) => links.length), 4);
  assert.equal(await page.$$eval(`${at("answer")} .special-direction`, (marks) => marks.length), 5);
  const whole = await page.textContent(at("answer"));
  assert.ok(whole.includes("\u{1f468}\u200d\u{1f469}"), whole);
  assert.deepEqual(
    asked.filter((url) => url.includes("example")),
    [],
  );
});

await check("huge code block stays fast", async (page) => {
  await connect(page);
  const start = Date.now();
  await say(page, "huge");
  await page.waitForSelector("text=That was long.", { timeout: 60_000 });
  assert.equal((await page.textContent(`${at("code")} code`)).length, 40_000 * 43);
  return { milliseconds: Date.now() - start };
});

await check("interrupted and ended sessions are shown and can be reopened", async (page) => {
  await connect(page, "daemon");
  await call(page, "dev/chat", { events: [{ type: "interrupted", reason: "the daemon does not answer", retryInMilliseconds: 500 }] });
  await call(page, "dev/chatPhase", { phase: "interrupted" });
  await page.waitForSelector(`${at("chat-over")}[data-state=interrupted]:visible`);
  await call(page, "dev/chat", { events: [{ type: "reconnected" }] });
  await call(page, "dev/chatPhase", { phase: "connected" });
  await page.waitForSelector(at("chat-over"), { state: "hidden" });
  await page.click(at("open-agent"));
  await page.waitForSelector(at("preflight"));
  await page.click(at("disconnect"));
  await page.waitForSelector(at("reopen"));
  await page.click(at("drawer-close"));
  await page.click(at("reopen"));
  await page.waitForSelector(at("chat-over"), { state: "hidden" });
});

await check("sessions are listed, opened and renamed; unreviewed writes need a confirmation", async (page) => {
  await connect(page, "daemon");
  await page.click(at("open-sessions"));
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=session]").length === 3);
  await page.click(at("more-sessions"));
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=session]").length === 4);
  assert.equal(await page.isVisible(at("more-sessions")), false);
  await page.click(at("session-rename"));
  await page.fill(at("question-text"), "Another name");
  await page.keyboard.press("Enter");
  await page.waitForSelector(`${at("chat-title")}:text-is('Another name')`);
  await page.click(`${at("session-open")} >> nth=0`);
  await page.waitForSelector(`${at("locality")}[data-where=child]`);
  await page.click(at("review-writes"));
  await page.click(at("question-no"));
  await page.waitForFunction(() => document.querySelector("[data-testid=review-writes]").checked);
  await page.click(at("review-writes"));
  await page.click(at("question-yes"));
  await page.waitForSelector(`${at("locality")}[data-writes=allow]`);
});

const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const faults = async (page) => {
  await page.evaluate(axe);
  return page.evaluate(async () =>
    (await window.axe.run()).violations.map(
      ({ id, impact, nodes }) =>
        `${impact} ${id} ${nodes
          .map((node) => node.target.join(" "))
          .slice(0, 3)
          .join(", ")}`,
    ),
  );
};
for (const colorScheme of ["light", "dark"]) {
  await check(
    `axe finds nothing, ${colorScheme}`,
    async (page) => {
      const found = { idle: await faults(page) };
      await connect(page, "daemon");
      found.connected = await faults(page);
      await say(page, "hello");
      await page.waitForSelector("text=All four tests pass");
      await page.waitForSelector(`${at("code")} .tok-keyword`);
      found.answer = await faults(page);
      await say(page, "ask");
      await page.waitForSelector(`${at("approval")}[data-armed=true]`);
      await page.waitForSelector(`${at("diff")} ${at("hunk")}`);
      found.approval = await faults(page);
      await page.keyboard.press("Alt+1");
      await idle(page);
      await say(page, "question");
      await page.waitForSelector(`${at("approval")}[data-armed=true]`);
      found.question = await faults(page);
      await page.focus(at("prompt"));
      await page.keyboard.type("/");
      await page.waitForSelector(at("completion-item"));
      found.completion = await faults(page);
      await page.keyboard.press("Escape");
      await page.click(at("open-agent"));
      await page.waitForSelector(at("preflight"));
      found.panel = await faults(page);
      await page.click(at("disconnect"));
      await page.waitForSelector(at("reopen"));
      found.over = await faults(page);
      assert.deepEqual(
        Object.entries(found).filter(([, list]) => list.length > 0),
        [],
      );
    },
    { colorScheme },
  );
}

await browser.close();
process.exit(failed > 0 ? 1 : 0);
