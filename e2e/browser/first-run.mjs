// Opens the sample review from the empty page, accepts it, opens it again on a phone, and rejects it.
import { play } from "./driver.mjs";

const PHONE = { width: 390, height: 844 };

await play(async (stage) => {
  const { url } = stage.details;
  const page = await stage.open(url);
  await page.connected();
  const text = await page.at("first-run").innerText();
  await stage.screenshot(page, "empty");
  // A second click must not open a second one.
  await page.at("demo").dblclick();
  await page.armed("shopping.md");
  await stage.screenshot(page, "sample");
  const sample = await page.lines();
  await stage.reached("sample");
  await page.at("accept").click();
  await page.at("list-empty").waitFor();
  await page.at("demo").waitFor();

  await stage.reached("accepted");
  await page.page.setViewportSize(PHONE);
  await stage.screenshot(page, "phone");
  await page.at("demo").click();
  await page.armed("shopping.md");
  await page.at("reject").click();
  await page.at("demo").waitFor();
  return { text, sample };
});
