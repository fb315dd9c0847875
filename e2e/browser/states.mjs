// The main states of the page: a screenshot and an axe-core run of each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { play } from "./driver.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

await play(async (stage) => {
  const { url, edit } = stage.details;
  const page = await stage.open(url, { width: 1440, height: 860 });
  const faults = {};
  const look = async (name) => {
    await page.page.mouse.move(0, 0);
    await stage.screenshot(page, name);
    await page.page.evaluate(AXE);
    const violations = await page.page.evaluate(async () => (await window.axe.run()).violations);
    faults[name] = violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      nodes: nodes.slice(0, 5).map(({ target, failureSummary }) => `${target.join(" ")}: ${failureSummary}`),
    }));
  };
  const panel = async (name, testId) => {
    await page.at(`open-${name}`).click();
    await page.at("drawer").getByTestId(testId).first().waitFor();
    await look(`panel-${name}`);
    await page.at("drawer-close").click();
    await page.at("drawer").waitFor({ state: "hidden" });
  };

  await page.connected();
  await look("empty");
  await stage.reached("empty");
  await page.armed(edit.file);
  await page.decideHunk(edit.reject, "reject");
  await page.typeAfter(edit.after, edit.text);
  await page.sent();
  await page.page.evaluate(() => document.activeElement.blur());
  await look("review-light");
  await page.at("open-keys").click();
  await page.at("keys").waitFor();
  await look("keys");
  await page.page.keyboard.press("Escape");
  await panel("context", "context-files");
  await panel("agents", "agent");
  await panel("doctor", "doctor-agent");
  await page.at("accept-all").first().click();
  await page.at("question").waitFor();
  await look("question");
  await page.at("question-no").click();

  await page.page.emulateMedia({ colorScheme: "dark" });
  await look("side-by-side-dark");
  await page.at("layout").click();
  await page.page.locator("[data-testid=panes][data-layout=unified]").waitFor();
  await look("review-dark");
  await page.page.emulateMedia({ colorScheme: "light" });
  await look("unified");
  await page.page.setViewportSize({ width: 390, height: 800 });
  await look("phone");
  const controls = page.page.locator(".top a, .top button");
  const cutOff = await controls.evaluateAll((controls) =>
    controls.filter((control) => control.getBoundingClientRect().right > innerWidth).map((control) => control.dataset.testid),
  );
  await page.at("back").click();
  await look("phone-list");
  return { faults, cutOff };
});
