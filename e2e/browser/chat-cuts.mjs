// An answer streams while the connections of the page and of the daemon are cut.

import { ChatPage, SOCKETS } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, prompts } = stage.details;
  await stage.context.addInitScript(SOCKETS);
  const page = await ChatPage.open(stage, url);
  await page.choose("daemon");
  await page.send(prompts.count);
  await page.until("word20 ");
  await page.at("prompt").fill("half a thought");
  await page.cut();
  await page.until("word200 ");
  await page.cut();
  const typed = await page.at("prompt").inputValue();
  await stage.reached("cut the daemon");
  await page.until("word999");
  await page.rest();
  await page.page.reload();
  await page.connected();
  await page.until("word999");
  return {
    typed,
    reloaded: await page.at("prompt").inputValue(),
    view: await page.page.evaluate(() => document.body.dataset.view),
    answers: await page.answers(),
    messages: await page.messages(),
  };
});
