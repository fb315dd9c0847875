// A local agent: its writes are reviewed on the same page, and a hostile answer is only text. axe checks each state.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ChatPage } from "./chat.mjs";
import { play } from "./driver.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

await play(async (stage) => {
  const { url, prompts } = stage.details;
  const asked = [];
  stage.context.on("request", (request) => asked.push(request.url()));
  const page = await ChatPage.open(stage, url, { width: 1440, height: 860 });
  const faults = {};
  const seen = {};
  const look = async (name) => {
    await page.page.mouse.move(0, 0);
    await stage.screenshot(page, name);
    await page.page.evaluate(AXE);
    const violations = await page.page.evaluate(async () => (await window.axe.run()).violations);
    faults[name] = violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.slice(0, 5).map(({ target, failureSummary }) => `${target.join(" ")}: ${failureSummary}`),
    }));
  };

  await look("idle");
  await page.choose("qwen");
  seen.locality = await page.at("locality").textContent();
  await look("connected");

  await page.send(prompts.markdown);
  await page.until("The end.");
  await page.rest();
  await page.page.locator("[data-testid=code] .tok-keyword").first().waitFor();
  await look("answer");

  await page.send(prompts.write);
  await page.at("to-reviews").waitFor();
  await look("change-to-review");
  await page.at("to-reviews").click();
  await page.armed("written.txt");
  await page.typeAfter("by the agent", " and by me");
  await page.sent();
  await page.at("accept").click();
  await page.at("view-chat").click();
  await page.until("DONE.");
  await page.rest();

  await page.send(prompts.hostile);
  await page.until("the last line");
  await page.rest();
  const answer = page.at("answer").last();
  seen.hostile = {
    title: await page.page.title(),
    elements: await answer.locator("script, img, iframe, svg, b").count(),
    links: await answer.locator("a").evaluateAll((links) => links.map((link) => `${link.getAttribute("href")} ${link.rel}`)),
    refused: await page.at("no-link").allTextContents(),
    directions: await answer.locator(".special-direction").count(),
  };
  await look("hostile");
  await page.send(prompts.huge);
  await page.until("After the code.");
  await page.rest();
  seen.code = (await page.at("code").last().locator("code").textContent()).length;

  await page.page.emulateMedia({ colorScheme: "dark" });
  await look("dark");
  await page.page.setViewportSize({ width: 390, height: 800 });
  await look("phone");
  await page.page.emulateMedia({ colorScheme: "light" });
  await page.at("open-agent").click();
  await page.at("agent-panel").waitFor();
  await look("phone-panel");
  await page.at("disconnect").click();
  await page.page.locator("[data-testid=chat-over][data-state=over]").waitFor();
  await page.at("drawer-close").click();
  await look("phone-over");
  const { origin } = new URL(url);
  return { seen, faults, elsewhere: asked.filter((address) => !address.startsWith(origin)) };
});
