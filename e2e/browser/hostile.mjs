// Changes with hostile text, and one with megabytes on a single line.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, long } = stage.details;
  const page = await stage.open(url);
  const results = {};
  const review = async (name, whatElse) => {
    await page.armed();
    await page.at("layout").click();
    await stage.screenshot(page, `${name}-unified`);
    await page.at("layout").click();
    await stage.screenshot(page, name);
    results[name] = {
      // Markup would show up as elements that the page never creates (the editor has images next to its marks).
      elements: await page.at("panes").locator("script, img:not(.cm-widgetBuffer), iframe, svg, a, style, object").count(),
      marks: await page
        .at("pane-draft")
        .locator(".special")
        .evaluateAll((marks) => marks.map((mark) => mark.textContent)),
      title: await page.page.title(),
      ...(await whatElse?.()),
    };
    await page.at("accept").click();
    await page.at("list-empty").waitFor();
    return stage.reached(name);
  };
  await stage.reached("listening");
  await review("markup", async () => ({
    lines: await page.lines(),
    heading: await page.at("review").locator("h2").textContent(),
    row: await page.at("review-row").first().textContent(),
    agent: await page.at("agent-group").first().locator("h3").textContent(),
  }));
  await review("long", async () => {
    const took = {};
    const measure = async (name, action) => {
      const start = performance.now();
      await action();
      took[name] = Math.round(performance.now() - start);
    };
    await measure("keys overlay", async () => {
      await page.page.keyboard.press("Escape");
      await page.page.keyboard.press("?");
      await page.at("keys").waitFor();
      await page.page.keyboard.press("Escape");
      await page.at("keys").waitFor({ state: "hidden" });
    });
    await measure("typing", async () => {
      await page.page.keyboard.press("e");
      await page.page.keyboard.press("Control+Home");
      await page.page.keyboard.type(long);
      await page.sent();
    });
    await page.page.keyboard.press("Escape");
    return { took };
  });
  const hacked = await page.page.evaluate(() => window.hacked ?? null);
  return { ...results, hacked };
});
