// The connection is lost while the companion keeps running.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const { url, edit } = stage.details;
  let broken = false;
  const open = new Set();
  // A proxy between the page's WebSocket and the companion, which can disconnect.
  await stage.context.routeWebSocket("**/front", (socket) => {
    if (broken) {
      socket.close();
      return;
    }
    socket.connectToServer();
    open.add(socket);
  });
  const page = await stage.open(url);
  await page.armed();
  await page.typeAfter(edit.after, edit.before);
  await page.sent();

  broken = true;
  for (const socket of open) await socket.close();
  await page.page.locator("body[data-connection=lost]").waitFor();
  const banner = await page.at("connection").textContent();
  await page.page.keyboard.type(edit.offline);
  await page.at("unsent").waitFor();
  await page.at("accept").click();
  const refusal = await page.at("notice").textContent();
  await stage.screenshot(page, "lost");
  await stage.reached("lost");

  broken = false;
  await page.connected();
  await page.at("connection").waitFor({ state: "hidden" });
  await page.sent();
  const lines = await page.lines();
  await page.at("accept").click();
  await page.at("list-empty").waitFor();
  return { banner, refusal, lines };
});
