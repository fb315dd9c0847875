// Latency of the first word of an answer: from the daemon to the page's WebSocket, and to its document.

import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

/** Runs in the page: records when each stamped word arrives and when it is in the document, in milliseconds since 1970. */
const WATCH = `
// The page's clock may have drifted from the system's since it started. The start of a millisecond shows by how much.
const origin = () => {
  const start = Date.now();
  while (Date.now() === start);
  return Date.now() - performance.now();
};
const begin = Math.min(...Array.from({ length: 20 }, origin));
const now = () => begin + performance.now();
const seen = new Map();
const note = (text, what) => {
  for (const [, stamp] of text.matchAll(/stamp:(\\d{16})/g)) {
    const known = seen.get(stamp) ?? {};
    known[what] ??= now();
    seen.set(stamp, known);
  }
};
window.seen = () => [...seen].map(([stamp, times]) => ({ sent: Number(stamp) / 1000, ...times }));
const Original = WebSocket;
window.WebSocket = class extends Original {
  constructor(...parameters) {
    super(...parameters);
    this.addEventListener('message', ({ data }) => note(data, 'arrived'));
  }
};
new MutationObserver((changes) => {
  for (const { target, addedNodes } of changes) {
    note(target.nodeType === Node.TEXT_NODE ? target.data : '', 'shown');
    for (const node of addedNodes) note(node.textContent ?? '', 'shown');
  }
}).observe(document, { childList: true, subtree: true, characterData: true });`;

const at = (numbers, part) =>
  Math.round([...numbers].sort((one, other) => one - other)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] * 100) / 100;
const figures = (numbers) => ({ median: at(numbers, 0.5), p95: at(numbers, 0.95), most: at(numbers, 1) });

await play(async (stage) => {
  await stage.context.addInitScript(WATCH);
  const page = await ChatPage.open(stage, stage.details.url);
  await page.choose("daemon");
  for (let turn = 0; turn < stage.details.turns; turn++) {
    await page.send(`turn ${turn}`);
    await page.page.locator("[data-testid=answer]").nth(turn).waitFor();
    await page.rest();
  }
  const seen = await page.page.evaluate(() => window.seen());
  const whole = seen.filter(({ arrived, shown }) => arrived && shown);
  return {
    turns: whole.length,
    figures: {
      "in the WebSocket": figures(whole.map(({ sent, arrived }) => arrived - sent)),
      "in the document": figures(whole.map(({ sent, shown }) => shown - sent)),
    },
  };
});
