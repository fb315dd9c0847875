// A daemon's conversation with attachments and a message during a turn, which is then rewound.

import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, prompts, pixel } = stage.details;
  let page = await ChatPage.open(stage, url);
  const seen = {};
  await page.choose("daemon");
  await page.at("mode").selectOption("default");
  await page.page.locator("[data-testid=mode][data-current=default]").waitFor();

  // Attachments: a large file is refused here, an image and a text reach the model.
  const picker = page.at("file-picker");
  await picker.setInputFiles({ name: "big.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(8 * 1024 * 1024 + 1) });
  await page.page.locator("[data-testid=status].problem").waitFor();
  seen.refused = await page.at("status").textContent();
  await picker.setInputFiles([
    { name: "pixel.png", mimeType: "image/png", buffer: Buffer.from(pixel, "base64") },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("the text of the notes") },
  ]);
  await page.page.waitForFunction(() => document.querySelectorAll("[data-testid=attachment]").length === 2);
  await stage.screenshot(page, "composer");
  await page.send("look");
  await page.page.locator("[data-testid=attached] img").waitFor();
  await page.rest();
  seen.attached = await page.at("attached").allTextContents();
  seen.preview = await page.page
    .locator("[data-testid=attached] img")
    .evaluateAll((images) => images.filter((image) => image.naturalWidth === 1).length);
  await stage.screenshot(page, "attachments");
  await stage.reached("attached");

  // While the agent waits for a permission, a message is sent for the same turn.
  await page.send(prompts.write);
  await page.asked();
  await page.send("by the way, be brief");
  await page.at("queued").waitFor();
  seen.waiting = await page.page.locator("[data-testid=queued] .queued-text").allTextContents();
  await stage.screenshot(page, "waiting");
  await page.page.locator("[data-testid=option][data-kind=allow_once]").click();
  await page.page.locator("[data-testid=queued]").waitFor({ state: "detached" });
  await page.rest();
  seen.during = await page.said();
  await stage.screenshot(page, "during");
  await page.page.reload();
  await page.connected();
  await page.at("user").nth(2).waitFor();
  seen.duringReloaded = await page.said();
  await stage.reached("received during the turn");

  // Rewind to before the second message.
  await page.at("rewind").nth(1).click();
  await page.at("question-yes").click();
  await page.page.waitForFunction(() => document.querySelectorAll("[data-testid=user]").length === 1);
  seen.filled = await page.at("prompt").inputValue();
  seen.rewound = await page.said();
  await stage.screenshot(page, "rewound");
  await page.at("prompt").fill("");
  await page.page.reload();
  await page.connected();
  await page.at("user").first().waitFor();
  seen.rewoundReloaded = await page.said();
  const link = await stage.reached("rewound");
  await page.page.close();
  page = await ChatPage.open(stage, link);
  await page.there();
  seen.rewoundRestarted = await page.said();
  await page.send(prompts.say);
  await page.until("The third answer.");
  await page.rest();
  seen.continued = await page.said();

  // A click on the last option while the message box has the focus, whose key hints then change.
  await page.send(prompts.reject);
  await page.asked();
  await page.page.locator("[data-testid=option][data-kind=reject_once]").click();
  await page.rest();
  seen.rejected = await page.at("tool").last().getAttribute("data-status");
  const linkAfterKill = await stage.reached("rejected");
  await page.page.close();
  page = await ChatPage.open(stage, linkAfterKill);
  await page.there();
  seen.rejectedRestarted = await page.at("tool").last().getAttribute("data-status");
  return { seen };
});
