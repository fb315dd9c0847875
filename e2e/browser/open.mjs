// The file that `alongside page --open` starts the browser with leads to the page, and logs it in.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const page = await stage.open(stage.details.file);
  await page.connected();
  return { address: page.page.url() };
});
