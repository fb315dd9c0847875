// While a person edits a change, a second one arrives. The first is accepted from the keyboard, the second rejected.
import { play } from "./driver.mjs";

const PLACES = ["review", "panes", "review-row", "hunk", "accept", "reject"];

await play(async (stage) => {
  const { url, first, second, edit } = stage.details;
  const page = await stage.open(url);
  await page.armed(first);
  await page.typeAfter(edit.after, edit.text);
  await page.sent();
  const seen = async () => ({
    boxes: await page.boxes(...PLACES),
    focus: await page.page.evaluate(() => {
      const { anchorNode, anchorOffset } = document.getSelection();
      const line = anchorNode.parentElement.closest(".cm-line");
      const pane = document.activeElement.closest("[data-testid=pane-draft]");
      return { inDraft: pane !== null, line: line.textContent, offset: anchorOffset };
    }),
    file: await page.at("review").locator("h2").textContent(),
  });
  const before = await seen();
  await stage.reached("edited");
  await page.at("review-row").nth(1).waitFor();
  // Whatever a second review sets off has been drawn after the next two frames.
  await page.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const after = await seen();
  await stage.screenshot(page, "second-arrived");

  // The person goes on typing where they were, and the keys that decide are the ones for somebody who types.
  await page.page.keyboard.type(edit.more);
  await page.page.keyboard.press("Control+Enter");
  await page.armed(second);
  await page.page.keyboard.press("Escape");
  await page.page.keyboard.press("Shift+R");
  await page.at("list-empty").waitFor();
  return { before, after };
});
