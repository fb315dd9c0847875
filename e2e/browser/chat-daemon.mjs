// A conversation with a daemon: answers, cancelling, permission requests answered here and elsewhere, a question, the model,
// and a crashed session.

import { ChatPage, recordAll, SOCKETS } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, other, prompts } = stage.details;
  const received = recordAll(stage.context);
  await stage.context.addInitScript(SOCKETS);
  const page = await ChatPage.open(stage, url);
  const seen = {};

  await page.choose("daemon");
  seen.locality = await page.at("locality").textContent();
  seen.model = await page.at("model").inputValue();
  await page.send(prompts.count);
  await page.until("word59");
  await page.rest();
  seen.counted = (await page.answers()).at(-1);
  await stage.screenshot(page, "daemon");

  await page.send(prompts.slow);
  await page.until("slow3");
  await page.at("prompt").fill("kept");
  await page.page.keyboard.press("Escape");
  await page.rest();
  seen.cancelled = (await page.at("chat-notice").allTextContents()).at(-1);
  seen.kept = await page.at("prompt").inputValue();
  await page.at("prompt").fill("");

  // Answered on this page, in the mode that asks.
  seen.modes = await page
    .at("mode")
    .locator("option")
    .evaluateAll((options) => options.map(({ value }) => value));
  await page.at("mode").selectOption("default");
  await page.page.locator("[data-testid=mode][data-current=default]").waitFor();
  await page.send(prompts.write);
  seen.offered = await page.asked();
  await page.page.locator("[data-testid=diff] [data-testid=hunk]").waitFor();
  seen.focus = await page.page.evaluate(() => document.activeElement.dataset.testid);
  await stage.screenshot(page, "permission");
  const once = seen.offered.findIndex(({ kind }) => kind === "allow_once");
  await page.page.keyboard.press(`Alt+${once + 1}`);
  await page.at("answered").waitFor();
  seen.own = await page.at("answered").last().textContent();
  await page.until("DONE.");
  await page.rest();

  // Another page joins late, sees the pending request, and answers it.
  await page.send(prompts.writeAgain);
  await page.asked();
  const late = await ChatPage.open(stage, other);
  await late.asked();
  seen.lateMessages = await late.messages();
  await late.page.locator("[data-testid=option][data-kind=allow_once]").click();
  await page.page.locator("[data-testid=answered]").nth(1).waitFor();
  seen.otherPage = await page.at("answered").nth(1).textContent();
  await page.rest();
  await page.send(prompts.writeOnceMore);
  await page.asked();
  const request = await page.at("approval").getAttribute("data-request");
  await stage.reached("asked", { request, option: seen.offered[once].id });
  await page.page.locator("[data-testid=answered]").nth(2).waitFor();
  seen.elsewhere = await page.at("answered").nth(2).textContent();
  seen.openForms = await page.at("approval").count();
  await page.rest();
  await stage.reached("answered elsewhere");

  await page.send(prompts.ask);
  await page.asked();
  await page.at("chat-question").getByText("Blue").click();
  await stage.screenshot(page, "question");
  await page.page.locator("[data-testid=option][data-option=proceed_once]").click();
  await page.rest();
  seen.question = await page.at("answered").last().textContent();

  await page.at("model").selectOption({ index: 1 });
  await page.page.waitForFunction((before) => document.querySelector("[data-testid=model]").dataset.current !== before, seen.model);
  seen.otherModel = await page.at("model").inputValue();
  await late.page.waitForFunction((now) => document.querySelector("[data-testid=model]").dataset.current === now, seen.otherModel);
  await late.page.close();

  await page.at("open-agent").click();
  await page.at("preflight").waitFor();
  await stage.screenshot(page, "locality");
  await page.at("drawer-close").click();

  const before = { messages: await page.messages(), answers: await page.answers() };
  await stage.reached("before death");
  await page.page.locator("[data-testid=chat-over][data-state=over]").waitFor();
  await stage.screenshot(page, "over");
  await page.at("reopen").click();
  await page.there();
  await page.until("word59");
  seen.before = before;
  seen.after = { messages: await page.messages(), answers: await page.answers() };
  await page.send(prompts.again);
  await page.until("Still here.");
  await page.rest();
  return { seen, received: await received() };
});
