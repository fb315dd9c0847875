// Decides the first change hunk by hunk, edits a line and accepts it; then rejects the second change.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, edit } = stage.details;
  const page = await stage.open(url);
  await page.connected();
  await stage.reached("listening");
  await page.armed();
  const proposed = await page.states();
  await page.decideHunk(0, "accept");
  await page.decideHunk(1, "reject");
  await page.typeAfter(edit.after, edit.text);
  await page.state(2, "edited");
  await page.sent();
  const decided = await page.states();
  await stage.screenshot(page, "decided");
  await page.at("accept").click();
  await page.at("list-empty").waitFor();

  await stage.reached("accepted");
  await page.armed();
  await page.at("reject").click();
  await page.at("list-empty").waitFor();
  return { proposed, decided };
});
