// Takes a screenshot of each main state: node dev/shots.mjs <folder>

import { join } from "node:path";
import { openPage, startBrowser, startDesk } from "./browser.mjs";

const folder = process.argv[2] ?? "shots";
const desk = await startDesk();
const browser = await startBrowser();
let link = 0;
const shot = async (name, options, act) => {
  const page = await openPage(browser, desk.links[link++], options);
  await page.waitForSelector("[data-testid=review][data-armed=true], [data-testid=list-empty]:visible, body[data-narrow=list]");
  await page.waitForTimeout(500);
  await act?.(page);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  for (const problem of page.problems) console.log(name, problem);
  await page.context().close();
};
const row = (page, number) => page.click(`[data-testid=review-row][data-review="${number}"]`);

try {
  await shot("split-light", { colorScheme: "light" });
  await shot("unified-dark", { colorScheme: "dark" }, async (page) => {
    await page.keyboard.press("s");
    await page.keyboard.press("n");
    await page.keyboard.press("r");
  });
  await shot("crlf", {}, (page) => row(page, 2));
  await shot("hostile-dark", { colorScheme: "dark" }, (page) => row(page, 4));
  await shot("conflict-panel", {}, async (page) => {
    await row(page, 5);
    await page.keyboard.press("v");
  });
  await shot("keys", { colorScheme: "dark" }, (page) => page.keyboard.press("?"));
  await shot("phone", { viewport: { width: 390, height: 780 }, colorScheme: "light" }, async (page) => {
    await page.screenshot({ path: join(folder, "phone-list.png") });
    await row(page, 1);
    await page.waitForSelector("[data-testid=review]");
  });
  await shot("edited", { colorScheme: "light" }, async (page) => {
    await row(page, 3);
    await page.waitForSelector("[data-testid=review][data-review='3'][data-armed=true]");
    await page.keyboard.press("e");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("# typed\n");
  });
} finally {
  await browser.close();
  desk.stop();
}
