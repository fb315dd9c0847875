// What all scenarios share: a browser, page objects, and the exchange with the test.
//
// Usage: node SCENARIO.mjs DESCRIPTION
//
// DESCRIPTION is JSON: `chromium` (the program), `profile` (an empty directory), `artifacts` (where screenshots go) and
// whatever the scenario needs. A scenario writes JSON lines, `{"event": "reached" | "done" | "failed", …}`. After a
// "reached" it waits for one JSON line, so that the test can act: propose a change, kill the companion.
// All assertions are in the test; a scenario fails only if it cannot continue.
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
/** Generous, for busy machines. */
const STEP_TIMEOUT = 120_000;

const say = (event, details) => process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);

/** The page object for reviews. */
export class ReviewPage {
  constructor(page) {
    this.page = page;
  }

  at(testId) {
    return this.page.getByTestId(testId);
  }

  /** Waits until the page is connected and up to date. */
  async connected() {
    await this.page.locator("body[data-connection=open]").waitFor();
  }

  /** Waits until a review (of this file, if named) is open and can be decided. */
  async armed(name = "") {
    await this.page
      .locator("[data-testid=review][data-armed=true]:not([data-over])")
      .filter({ has: this.page.locator("h2", { hasText: name }) })
      .waitFor();
  }

  /** The first draft line with this text. */
  line(text) {
    return this.at("pane-draft").locator(".cm-line", { hasText: text }).first();
  }

  /** The visible lines of the draft. */
  lines() {
    return this.at("pane-draft").locator(".cm-line").allTextContents();
  }

  /** The states of the hunks, in order. */
  states() {
    return this.at("hunk").evaluateAll((hunks) => hunks.map((hunk) => hunk.dataset.state));
  }

  /** Waits until the hunk at this index (0-based) has a state. */
  async state(index, state) {
    await this.page.locator(`:nth-match([data-testid=hunk], ${index + 1})[data-state=${state}]`).waitFor();
  }

  /** Accepts or rejects the hunk at this index with its button, and waits for its new state. */
  async decideHunk(index, decision) {
    await this.at("hunk").nth(index).getByTestId(`hunk-${decision}`).click();
    await this.state(index, `${decision}ed`);
  }

  /** Types at the end of the line with this text. */
  async typeAfter(text, typed) {
    // Click at the start: a line can be wider than its pane, and a click in the middle would scroll horizontally.
    await this.line(text).click({ position: { x: 2, y: 10 } });
    await this.page.keyboard.press("End");
    await this.page.keyboard.type(typed);
  }

  /** Waits until all edits have reached the companion. */
  async sent() {
    await this.at("unsent").waitFor({ state: "hidden" });
  }

  /** The bounding boxes of these elements. */
  async boxes(...testIds) {
    const boxes = await Promise.all(testIds.map((testId) => this.at(testId).first().boundingBox()));
    return Object.fromEntries(testIds.map((testId, index) => [testId, boxes[index]]));
  }
}

class Stage {
  /** Errors, dialogs and policy violations in any page. Should stay empty. */
  complaints = { errors: [], dialogs: [], violations: [] };

  constructor(details, context, lines) {
    this.details = details;
    this.context = context;
    this.lines = lines;
  }

  /** Opens a URL, usually a login link. */
  async open(url, viewport) {
    const page = await this.context.newPage();
    if (viewport) await page.setViewportSize(viewport);
    page.setDefaultTimeout(STEP_TIMEOUT);
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

  /** Reports this point to the test, and waits for its reply. */
  async reached(point, details = {}) {
    say("reached", { point, details });
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`the test ended at ${point}`);
    return JSON.parse(value);
  }

  async screenshot({ page }, name) {
    mkdirSync(this.details.artifacts, { recursive: true });
    await page.screenshot({ path: join(this.details.artifacts, `${name}.png`), animations: "disabled", caret: "hide" });
  }

  /** Saves screenshots and documents of a failure. */
  async keepFailure() {
    for (const [number, page] of this.context.pages().entries()) {
      await this.screenshot({ page }, `failure-${number}`);
      writeFileSync(join(this.details.artifacts, `failure-${number}.html`), await page.content());
    }
  }
}

/** Runs a scenario and reports its return value as the result. */
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
