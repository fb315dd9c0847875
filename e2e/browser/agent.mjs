// What the page offers for an agent that takes reasons and mentions: a rejection with a reason, and the selection in its prompt.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, reason } = stage.details;
  const page = await stage.open(url);
  await page.armed();
  await page.at("reason").fill(reason);
  await stage.screenshot(page, "reason");
  await page.at("reject").click();
  await page.at("list-empty").waitFor();
  await stage.reached("rejected");

  await page.page.locator("#open-context").click();
  const files = await page.at("context-files").textContent();
  await page.at("send-selection").click();
  await page.at("send-selection").filter({ hasText: "Sent to" }).waitFor();
  const sent = await page.at("send-selection").textContent();
  await stage.screenshot(page, "context");
  await page.page.locator("#open-doctor").click();
  await page.page.locator("[data-panel=doctor] li").first().waitFor();
  await stage.screenshot(page, "doctor");
  return { files, sent };
});
