// How long it takes to open a very large change, and to decide one of its hunks.
import { play } from "./driver.mjs";

/** Runs in the page: resolves with the time when the document satisfies `ready` and has been painted. */
const PAINTED = `window.painted = (ready) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('it was never painted: ' + ready)), 60000);
  const look = () => {
    if (!ready()) return false;
    // The frame has been submitted when a task after its callbacks runs.
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    return true;
  };
  if (look()) return;
  const observer = new MutationObserver(() => look() && observer.disconnect());
  observer.observe(document, { childList: true, subtree: true, attributes: true });
});
// How long the companion takes for a decision, from the request to the notification with the new hunks.
window.waits = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  if (text.includes('"review/hunk"')) {
    const start = performance.now();
    const hear = (event) => {
      if (!event.data.includes('"review/edited"')) return;
      this.removeEventListener('message', hear);
      window.waits.push(event.timeStamp - start);
    };
    this.addEventListener('message', hear);
  }
  send.call(this, text);
};
window.opened = window.painted(() => document.querySelector('[data-testid=pane-draft] [data-testid=hunk]'));`;

const median = (numbers) => [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)];

await play(async (stage) => {
  await stage.context.addInitScript(PAINTED);
  const page = await stage.open(stage.details.url);
  // A page's clock starts with its navigation.
  const first = await page.page.evaluate(() => window.opened);
  await page.page.reload();
  const navigation = await page.page.evaluate(() => window.opened);
  const measures = () => page.page.evaluate(() => performance.getEntriesByName("alongside:open").map(({ duration }) => duration));
  const [opening] = await measures();
  await page.armed();
  const decisions = [];
  for (let index = 0; index < 10; index += 1) {
    const decision = index % 2 === 0 ? "reject" : "accept";
    decisions.push(
      await page.page.evaluate(async (decision) => {
        const hunk = () => document.querySelector("[data-testid=hunk]");
        const start = performance.now();
        hunk().querySelector(`[data-testid=hunk-${decision}]`).click();
        return (await window.painted(() => hunk()?.dataset.state === `${decision}ed`)) - start;
      }, decision),
    );
  }
  const waits = await page.page.evaluate(() => window.waits);
  await page.typeAfter("replaced(50)", " ");
  await page.page.evaluate(() => {
    const typed = () => document.querySelector("[data-testid=pane-draft]").textContent.includes("~");
    const listen = () => {
      const start = performance.now();
      window.typing = window.painted(typed).then((end) => end - start);
    };
    document.addEventListener("keydown", listen, { capture: true, once: true });
  });
  await page.page.keyboard.press("~");
  const typing = await page.page.evaluate(() => window.typing);
  const hunks = await page.at("progress").textContent();
  await page.sent();
  await stage.screenshot(page, "large");
  const rounded = (number) => Math.round(number * 10) / 10;
  return {
    hunks,
    figures: {
      firstNavigation: rounded(first),
      navigation: rounded(navigation),
      opening: rounded(opening),
      decision: rounded(median(decisions)),
      decisionInCompanion: rounded(median(waits)),
      firstDecision: rounded(decisions[0]),
      slowestDecision: rounded(Math.max(...decisions)),
      decisions: decisions.map(rounded),
      typing: rounded(typing),
    },
  };
});
