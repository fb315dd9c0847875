// A browser with VS Code windows, driven by the tests.
//
// Usage: node driver.mjs DESCRIPTION
//
// DESCRIPTION is JSON: `chromium` (the program), `profile` (an empty directory) and `url` (of code-server). The tests
// write requests, one JSON object a line: {"id", "window", "method", "params"}. Each is answered by {"id", "result"} or
// {"id", "error"}; requests to different windows run side by side. Method `open` opens a window, the others are methods
// of `Window`. The browser ends with the input.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { RECORD_MESSAGES } from "./chat-view.mjs";
import { Window } from "./window.mjs";

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

const details = JSON.parse(process.argv[2]);
const context = await chromium.launchPersistentContext(details.profile, {
  executablePath: details.chromium,
  args: FLAGS,
  viewport: { width: 1280, height: 800 },
  colorScheme: "light",
  reducedMotion: "reduce",
});
context.setDefaultTimeout(STEP_TIMEOUT);
const windows = new Map();
await context.exposeBinding("recordMessage", ({ page }, text) => {
  for (const window of windows.values()) if (window.page === page) window.messages.push(text);
});
await context.addInitScript(RECORD_MESSAGES);

async function handle({ window: name, method, params = {} }) {
  if (method === "open") {
    const page = await context.newPage();
    windows.set(name, new Window(page, details.url));
  }
  const window = windows.get(name);
  if (!window) throw new Error(`there is no window ${name}`);
  return await window[method](params);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const start = performance.now();
  const answer = (details) => {
    if (process.env.TRACE) console.error(request.window, request.method, JSON.stringify(request.params), Math.round(performance.now() - start));
    process.stdout.write(`${JSON.stringify({ id: request.id, ...details })}\n`);
  };
  void handle(request).then(
    (result) => answer({ result: result ?? null }),
    (error) => answer({ error: String(error.stack ?? error) }),
  );
}
await context.close();
process.exit(0);
