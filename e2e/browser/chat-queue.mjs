// The queue, with a removed message, and what else the agent reports: a plan, a suggestion, a name.

import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, agent, prompts } = stage.details;
  const page = await ChatPage.open(stage, url);
  const seen = {};
  await page.choose(agent);

  Object.assign(seen, await page.queueTwoAndRemoveOne(prompts));

  await page.send(prompts.plan);
  await page.at("plan").waitFor();
  await page.rest();
  await page.at("plan").locator("summary").click();
  seen.plan = await page
    .at("plan")
    .locator("li")
    .evaluateAll((steps) => steps.map((step) => step.lastChild.textContent));
  await stage.screenshot(page, "plan");

  await page.at("suggestion").waitFor();
  seen.suggestion = await page.at("suggestion").textContent();
  await page.at("suggestion").click();
  seen.filled = await page.at("prompt").inputValue();
  await page.at("prompt").fill("");

  await page.at("chat-title").click();
  await page.at("question-text").fill("A better name");
  await page.at("question-yes").click();
  await page.page.locator("[data-testid=chat-title]", { hasText: "A better name" }).waitFor();
  seen.title = await page.at("chat-title").textContent();
  await page.page.reload();
  await page.connected();
  await page.page.locator("[data-testid=chat-title]", { hasText: "A better name" }).waitFor();
  seen.titleReloaded = await page.at("chat-title").textContent();
  await page.at("open-sessions").click();
  await page.page.locator("#drawer", { hasText: "A better name" }).waitFor();
  seen.listed = true;
  await stage.screenshot(page, "sessions");
  return { seen };
});
