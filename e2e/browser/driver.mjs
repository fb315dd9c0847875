// What every scenario shares: a browser, pages that are watched, and the conversation with the test.
//
// Usage: node SCENARIO.mjs DESCRIPTION
//
// DESCRIPTION is JSON: `chromium` (the program), `profile` (an empty directory), `artifacts` (where screenshots go) and
// whatever the scenario needs. A scenario writes JSON lines, `{"event": "reached" | "done" | "failed", …}`. After a
// "reached" it waits for one JSON line, so that the test can do its part: let a change arrive, kill the companion.
// All the judging is in the test; a scenario fails by itself only when it cannot go on.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** How long a thing that normally takes a second may take on a machine that is busy with other things. */
const PATIENCE = 60_000;

const say = (event, details) => process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);

/** A page with the words of the review page. */
export class ReviewPage {
  constructor(page) {
    this.page = page;
  }

  /** The element with this `data-testid`. */
  at(testId) {
    return this.page.getByTestId(testId);
  }

  /** Waits until the page has caught up with the companion. */
  async connected() {
    await this.page.locator("body[data-connection=open]").waitFor();
  }

  /** Waits until a review is open, of this file if one is named, and can be decided. */
  async armed(name = "") {
    await this.page
      .locator("[data-testid=review][data-armed=true]:not([data-over])")
      .filter({ has: this.page.locator("h2", { hasText: name }) })
      .waitFor();
  }

  /** A line of the draft that contains this text. */
  line(text) {
    return this.at("pane-draft").locator(".cm-line", { hasText: text }).first();
  }

  /** The lines of the draft that are on the screen. */
  lines() {
    return this.at("pane-draft").locator(".cm-line").allTextContents();
  }

  /** The states of the parts, in order. */
  states() {
    return this.at("hunk").evaluateAll((hunks) => hunks.map((hunk) => hunk.dataset.state));
  }

  /** Waits until the part at this index (from 0) has a state. */
  async state(index, state) {
    await this.page.locator(`:nth-match([data-testid=hunk], ${index + 1})[data-state=${state}]`).waitFor();
  }

  /** Accepts or rejects the part at this index with its button, and waits until it shows. */
  async decideHunk(index, decision) {
    await this.at("hunk").nth(index).getByTestId(`hunk-${decision}`).click();
    await this.state(index, `${decision}ed`);
  }

  /** Types at the end of the line that contains this text. */
  async typeAfter(text, typed) {
    // At its beginning: a line can be wider than its pane, and a click in its middle would scroll sideways.
    await this.line(text).click({ position: { x: 2, y: 10 } });
    await this.page.keyboard.press("End");
    await this.page.keyboard.type(typed);
  }

  /** Waits until all that was typed has reached the companion. */
  async sent() {
    await this.at("unsent").waitFor({ state: "hidden" });
  }

  /** Where these are on the screen, to the hundredth of a pixel. */
  async boxes(...testIds) {
    const boxes = await Promise.all(testIds.map((testId) => this.at(testId).first().boundingBox()));
    return Object.fromEntries(testIds.map((testId, index) => [testId, boxes[index]]));
  }
}

class Stage {
  /** What the browser complained about, in any page. All of it should stay empty. */
  complaints = { errors: [], dialogs: [], violations: [] };

  constructor(details, context, lines) {
    this.details = details;
    this.context = context;
    this.lines = lines;
  }

  /** Opens a page at an address, usually a login link. */
  async open(url, viewport) {
    const page = await this.context.newPage();
    if (viewport) await page.setViewportSize(viewport);
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => this.complaints.errors.push(String(error)));
    page.on("dialog", (dialog) => {
      if (dialog.type() !== "beforeunload") this.complaints.dialogs.push(dialog.message());
      void dialog.accept();
    });
    await page.exposeBinding("reportViolation", (_source, violation) => this.complaints.violations.push(violation));
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.reportViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`);
      });
    });
    await page.goto(url);
    return new ReviewPage(page);
  }

  /** Tells the test that this point is reached, and waits for what the test says. */
  async reached(point, details = {}) {
    say("reached", { point, details });
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`the test has gone away at ${point}`);
    return JSON.parse(value);
  }

  /** Keeps a picture of a page. */
  async screenshot({ page }, name) {
    mkdirSync(this.details.artifacts, { recursive: true });
    await page.screenshot({ path: join(this.details.artifacts, `${name}.png`), animations: "disabled", caret: "hide" });
  }

  /** Keeps what can be seen of a failure. */
  async keepFailure() {
    for (const [number, page] of this.context.pages().entries()) {
      await this.screenshot({ page }, `failure-${number}`);
      writeFileSync(join(this.details.artifacts, `failure-${number}.html`), await page.content());
    }
  }
}

/** Plays a scenario; what it returns is the result. */
export async function play(scenario) {
  const details = JSON.parse(process.argv[2]);
  const context = await chromium.launchPersistentContext(details.profile, {
    executablePath: details.chromium,
    args: FLAGS,
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const stage = new Stage(details, context, lines);
  let failed = false;
  try {
    const result = await scenario(stage);
    say("done", { result, complaints: stage.complaints });
  } catch (error) {
    failed = true;
    await stage.keepFailure().catch(() => undefined);
    say("failed", { message: error.stack, complaints: stage.complaints });
  }
  await context.close();
  process.exit(failed ? 1 : 0);
}
