// The same change in two pages: edits show in both, and the first decision wins.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, otherUrl, edit, answer } = stage.details;
  const one = await stage.open(url);
  const other = await stage.open(otherUrl);
  await one.armed();
  await other.armed();
  await one.decideHunk(0, "reject");
  await other.state(0, "rejected");
  await one.typeAfter(edit.after, edit.text);
  await other.line(edit.after + edit.text).waitFor();
  // And the other way around, in the same line.
  await other.typeAfter(edit.after, answer);
  await one.line(edit.after + edit.text + answer).waitFor();
  await one.sent();
  await other.sent();
  const lines = [await one.lines(), await other.lines()];
  const states = [await one.states(), await other.states()];
  await other.at("accept").click();
  await other.at("list-empty").waitFor();
  await one.page.locator("[data-testid=review][data-over=accepted]").waitFor();
  await one.page.bringToFront();
  const notice = await one.at("notice").textContent();
  await stage.screenshot(one, "decided-elsewhere");
  // Too late: this decides nothing, and the text is read-only.
  await one.at("reject").click({ force: true });
  const editable = await one.at("pane-draft").locator(".cm-content").getAttribute("contenteditable");
  return { lines, states, notice, editable };
});
