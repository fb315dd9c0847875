// For scripts that drive the page: the fake backend and Chromium.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** Starts the fake backend and returns its login links. */
export async function startDesk(port) {
  const target = process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, "../../target");
  const program = join(target, process.env.PROFILE ?? "debug", "examples/fake_backend");
  const child = spawn(program, port ? [String(port)] : [], { stdio: ["ignore", "pipe", "inherit"] });
  const links = [];
  for await (const line of createInterface({ input: child.stdout })) {
    links.push(line);
    if (links.length === 48) break;
  }
  return { links, stop: () => child.kill("SIGKILL") };
}

export async function startBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--headless",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A logged-in page; its errors and warnings are collected in `problems`. */
export async function openPage(browser, link, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  const page = await context.newPage();
  // Lets a script cut the connection.
  await page.addInitScript(() => {
    const Original = window.WebSocket;
    window.sockets = [];
    window.WebSocket = class extends Original {
      constructor(...parameters) {
        super(...parameters);
        window.sockets.push(this);
      }
    };
  });
  page.problems = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(String(error)));
  await page.goto(link);
  await page.waitForSelector("body[data-connection=open]");
  return page;
}
