// A local agent: a mentioned file, the queue with a removed message, and the switch for writes.

import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, agent, prompts } = stage.details;
  const page = await ChatPage.open(stage, url);
  const seen = {};
  await page.choose(agent);

  await page.at("prompt").pressSequentially("@not");
  await page.page.locator("#completion [role=option]", { hasText: "notes.txt" }).waitFor();
  seen.offered = await page.page.locator("#completion [role=option] .name").allTextContents();
  await stage.screenshot(page, "mention");
  await page.at("prompt").press("Enter");
  seen.mention = await page.at("prompt").inputValue();
  await page.at("prompt").pressSequentially("explain it");
  await page.at("prompt").press("Enter");
  await page.at("answer").first().waitFor();
  await page.rest();
  await stage.reached("mentioned");

  Object.assign(seen, await page.queueTwoAndRemoveOne(prompts));

  const words = () => page.page.locator("[data-testid=locality] .grow").textContent();
  await page.at("review-writes").click();
  await page.at("question-no").click();
  await page.page.locator("[data-testid=review-writes]:checked").waitFor();
  seen.refused = true;
  await page.at("review-writes").click();
  await page.at("question-yes").click();
  await page.page.locator("[data-testid=locality][data-writes=allow]").waitFor();
  seen.allowed = await words();
  await stage.screenshot(page, "writes-allowed");
  await page.send(prompts.write);
  await page.until("DONE.");
  await page.rest();
  seen.reviewsWhileAllowed = await page.page.locator("[data-testid=to-reviews]:visible").count();
  await page.page.reload();
  await page.connected();
  await page.page.locator("[data-testid=locality][data-writes=allow]").waitFor();
  seen.allowedReloaded = await words();
  await stage.reached("written");

  await page.at("review-writes").click();
  await page.page.locator("[data-testid=locality][data-writes=review]").waitFor();
  seen.back = await words();
  await page.send(prompts.writeReviewed);
  await page.at("to-reviews").waitFor();
  await page.at("to-reviews").click();
  await page.armed("reviewed.txt");
  await page.at("reject").click();
  await page.at("view-chat").click();
  await page.rest();
  // A rejection is not an error.
  const card = page.at("tool").last();
  seen.rejected = [await card.getAttribute("data-status"), await card.getByTestId("answered").textContent()];
  seen.rejectedText = await card.textContent();
  await stage.screenshot(page, "rejected");
  return { seen };
});
