// A local agent is killed in the middle of an answer; the next message starts it again.

import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, agent, prompts } = stage.details;
  const page = await ChatPage.open(stage, url);
  const seen = {};
  await page.choose(agent);
  await page.send(prompts.first);
  await page.until("The first answer.");
  await page.rest();
  await page.send(prompts.slow);
  await page.until("slow3");
  await page.queue(prompts.queued);
  await stage.reached("answering");

  await page.page.locator("[data-testid=chat-over][data-state=over]").waitFor();
  seen.over = await page.page.locator("[data-testid=chat-over] .grow").textContent();
  seen.phase = await page.at("phase").textContent();
  seen.turn = await page.at("composer").getAttribute("data-turn");
  seen.said = await page.said();
  seen.notices = await page.at("chat-notice").allTextContents();
  seen.partial = (await page.answers()).at(-1);
  await stage.screenshot(page, "killed");

  await page.send(prompts.again);
  await page.until("Here again.");
  await page.rest();
  const said = async () => (await page.said()).filter((kind) => kind !== "notice");
  seen.after = await said();
  await page.page.reload();
  await page.connected();
  await page.until("Here again.");
  seen.afterReloaded = await said();
  await stage.screenshot(page, "again");
  return { seen };
});
