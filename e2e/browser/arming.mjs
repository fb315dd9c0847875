// A change appears while keys are being pressed.
import { play } from "./driver.mjs";

await play(async (stage) => {
  const page = await stage.open(stage.details.url);
  await page.connected();
  // Presses in the page itself: a key sent by the driver may arrive too late to prove anything.
  await page.page.evaluate(() => {
    window.pressed = [];
    const key = (init) => () => document.body.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, ...init }));
    const click = (testId) => () => document.querySelector(`[data-testid=${testId}]`)?.click();
    const actions = [
      ...["A", "R", "a", "r"].map((name) => key({ key: name })),
      key({ key: "Enter", ctrlKey: true }),
      ...["accept", "reject", "hunk-reject"].map(click),
    ];
    const press = (appeared) => {
      // On a busy machine the delay may end between two actions.
      for (const action of actions) if (performance.now() - appeared < 350) action();
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
