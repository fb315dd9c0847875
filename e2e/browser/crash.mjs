// The companion crashes while the user edits, and restarts.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, edit } = stage.details;
  const page = await stage.open(url);
  await page.armed();
  await page.decideHunk(0, "reject");
  await page.typeAfter(edit.after, edit.before);
  await page.sent();
  await stage.reached("half-edited");
  await page.page.locator("body[data-connection=lost]").waitFor();
  const banner = await page.at("connection").textContent();
  // The cursor has not moved.
  await page.page.keyboard.type(edit.offline);
  await page.at("unsent").waitFor();
  const offline = await page.lines();
  await stage.screenshot(page, "lost");
  await stage.reached("lost");
  await page.connected();
  await page.at("connection").waitFor({ state: "hidden" });
  await page.sent();
  await page.page.keyboard.type(edit.afterwards);
  await page.sent();
  const online = await page.lines();
  const states = await page.states();
  await stage.screenshot(page, "back");
  // For the restarted companion the change has just appeared, so a click right away is refused, with a notice.
  const isDecided = () =>
    page
      .at("list-empty")
      .waitFor({ timeout: 3000 })
      .then(
        () => true,
        () => false,
      );
  do await page.at("accept").click();
  while (!(await isDecided()) && (await page.at("notice").isVisible()));
  return { banner, offline, online, states };
});
