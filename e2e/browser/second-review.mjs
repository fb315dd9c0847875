// A second change arrives while the user edits the first. The first is accepted with the keyboard, the second rejected.
import { play } from "./driver.mjs";

const ELEMENTS = ["review", "panes", "review-row", "hunk", "accept", "reject"];

await play(async (stage) => {
  const { url, first, second, edit } = stage.details;
  const page = await stage.open(url);
  await page.armed(first);
  await page.typeAfter(edit.after, edit.text);
  await page.sent();
  const seen = async () => ({
    boxes: await page.boxes(...ELEMENTS),
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
  // All effects of the second review are drawn after two frames.
  await page.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const after = await seen();
  await stage.screenshot(page, "second-arrived");

  // The user continues typing, and decides with the shortcuts that work in the editor.
  await page.page.keyboard.type(edit.more);
  await page.page.keyboard.press("Control+Enter");
  await page.armed(second);
  await page.page.keyboard.press("Escape");
  await page.page.keyboard.press("Shift+R");
  await page.at("list-empty").waitFor();
  return { before, after };
});
