// A change appears under the fingers of somebody who is just pressing keys.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const page = await stage.open(stage.details.url);
  await page.connected();
  // Presses in the page itself, because a key that comes through the driver may come too late to prove anything.
  await page.page.evaluate(() => {
    window.pressed = [];
    const press = (appeared) => {
      for (const key of ["A", "R", "a", "r"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
      for (const name of ["accept", "reject", "hunk-reject"]) document.querySelector(`[data-testid=${name}]`)?.click();
      window.pressed.push(performance.now() - appeared);
    };
    const observer = new MutationObserver(() => {
      if (!document.querySelector("[data-testid=review]")) return;
      observer.disconnect();
      const appeared = performance.now();
      press(appeared);
      const again = setInterval(() => {
        if (performance.now() - appeared < 350) press(appeared);
        else clearInterval(again);
      }, 50);
    });
    observer.observe(document.body, { childList: true, subtree: true });
  });
  await stage.reached("listening");
  await page.armed();
  const pressed = await page.page.evaluate(() => window.pressed);
  const states = await page.states();
  await stage.reached("armed");
  await page.page.keyboard.press("Shift+A");
  await page.at("list-empty").waitFor();
  return { pressed, states };
});
