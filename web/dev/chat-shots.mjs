// Takes a screenshot of each main state of the chat: node dev/chat-shots.mjs <folder>

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openPage, startBrowser, startDesk } from "./browser.mjs";

const folder = process.argv[2] ?? "shots";
await mkdir(folder, { recursive: true });
const browser = await startBrowser();
const phone = { viewport: { width: 390, height: 780 } };

/** Each screenshot has its own desk, because all pages of a desk share one conversation. */
async function shot(name, options, act) {
  const desk = await startDesk();
  const page = await openPage(browser, desk.links[0], options);
  await page.click("[data-testid=view-chat]");
  try {
    await act?.(page);
    await page.waitForTimeout(500);
  } finally {
    await page.screenshot({ path: join(folder, `${name}.png`) });
    for (const problem of page.problems) console.log(name, problem);
    await page.context().close();
    desk.stop();
  }
}

const connect = async (page, agent = "qwen") => {
  await page.click(`[data-testid=choose-agent][data-agent=${agent}]`);
  await page.waitForSelector("[data-testid=locality]:visible");
};
const say = async (page, text) => {
  await page.fill("[data-testid=prompt]", text);
  await page.keyboard.press("Enter");
};
const done = (page) =>
  page.waitForFunction(
    () =>
      document.querySelector("[data-testid=stop]").hidden &&
      document.querySelectorAll("[data-testid=tool], [data-testid=answer]").length > 0,
  );

try {
  await shot("chat-idle", { colorScheme: "light" });
  await shot("chat-light", { colorScheme: "light", viewport: { width: 1360, height: 1010 } }, async (page) => {
    await connect(page);
    await say(page, "Give the retry policy a deadline, and keep the default as it is.");
    await page.waitForSelector("text=All four tests pass");
  });
  await shot("chat-dark-ask", { colorScheme: "dark" }, async (page) => {
    await connect(page, "daemon");
    await say(page, "ask me");
    await page.waitForSelector("[data-testid=approval]");
    await page.waitForSelector("[data-testid=diff] [data-testid=hunk]");
  });
  await shot("chat-question", { colorScheme: "light" }, async (page) => {
    await connect(page);
    await say(page, "question");
    await page.waitForSelector("[data-testid=chat-question]");
  });
  await shot("chat-queue-completion", { colorScheme: "light" }, async (page) => {
    await connect(page);
    await say(page, "slow");
    await page.waitForSelector("[data-testid=stop]:visible");
    await say(page, "and then run the tests");
    await page.waitForSelector("[data-testid=queued]");
    await page.keyboard.press("Alt+s");
    await page.waitForSelector("[data-testid=attachment]");
    await page.keyboard.type("Look at @re");
    await page.waitForSelector("[data-testid=completion-item]");
  });
  await shot("chat-hostile", { colorScheme: "dark" }, async (page) => {
    await connect(page);
    await say(page, "hostile");
    await done(page);
  });
  await shot("chat-phone", { ...phone, colorScheme: "light" }, async (page) => {
    await connect(page, "daemon");
    await say(page, "Give the retry policy a deadline.");
    await page.waitForSelector("text=All four tests pass");
  });
  await shot("chat-phone-ask", { ...phone, colorScheme: "dark" }, async (page) => {
    await connect(page);
    await say(page, "ask");
    await page.waitForSelector("[data-testid=diff] [data-testid=hunk]");
  });
  await shot("chat-agent-panel", { colorScheme: "light" }, async (page) => {
    await connect(page, "daemon");
    await page.click("[data-testid=open-agent]");
  });
  await shot("chat-over", { colorScheme: "light" }, async (page) => {
    await connect(page);
    await say(page, "fail");
    await page.click("[data-testid=open-agent]");
    await page.click("[data-testid=disconnect]");
    await page.click("[data-testid=drawer-close]");
  });
} finally {
  await browser.close();
}
