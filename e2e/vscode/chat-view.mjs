// The chat in a window's side bar: the page's chat, in the innermost frame of a webview.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ChatPage } from "../browser/chat.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Runs in every frame: reports each message that arrives there.
 *
 * VS Code opens the document of a webview again, which removes listeners. So those that are added later are wrapped.
 */
export const RECORD_MESSAGES = `{
  const report = window.recordMessage;
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    if (type !== "message" || this !== window || typeof listener !== "function") return add.call(this, type, listener, options);
    return add.call(this, type, (event) => {
      void report(JSON.stringify(event.data) ?? "");
      return listener.call(this, event);
    }, options);
  };
}`;

export class ChatView extends ChatPage {
  /** Waits until the chat in this window is connected to the companion. */
  static async of(window) {
    const active = window.frameLocator("iframe.webview.ready").locator("iframe#active-frame");
    const frame = await (await active.elementHandle()).contentFrame();
    const view = new ChatView(frame);
    await view.connected();
    return view;
  }

  /** Sends a message while the companion or the agent may be coming back: again and again, as a user would. */
  async sendEventually(text) {
    await this.at("prompt").fill(text);
    // It may have arrived although its response was lost; then the box is cleared later.
    while ((await this.at("prompt").inputValue()) !== "") {
      await this.page.locator("[data-testid=send][aria-disabled=false]").waitFor();
      await this.at("prompt").press("Enter");
      await this.page.waitForFunction(
        () =>
          document.querySelector("[data-testid=prompt]").value === "" || document.querySelector("[data-testid=status].problem") !== null,
      );
    }
  }

  /** Waits for the session after the window was reloaded. If that took too long for the companion, opens it again as a user would. */
  async back() {
    await this.page.locator("[data-testid=locality]:visible, [data-testid=reopen]:visible").first().waitFor();
    if (await this.at("reopen").isVisible()) await this.at("reopen").click();
    await this.there();
  }

  /** Cancels the turn by key. */
  async escape() {
    await this.at("prompt").press("Escape");
  }

  async text(testId) {
    return await this.at(testId).last().textContent();
  }

  async waitFor(testId) {
    await this.at(testId).last().waitFor();
  }

  async click(testId) {
    await this.at(testId).last().click();
  }

  /** Opens a part that is folded. */
  async open(testId) {
    await this.at(testId).locator("summary").click();
  }

  /** Chooses a mode and waits until the agent has it. */
  async setMode(mode) {
    await this.at("mode").selectOption(mode);
    await this.page.locator(`[data-testid=mode][data-current=${mode}]`).waitFor();
  }

  /** Answers the permission request. */
  async allowOnce() {
    await this.asked();
    await this.page.locator("[data-testid=option][data-kind=allow_once]").click();
    await this.at("answered").last().waitFor();
  }

  async fill(text) {
    await this.at("prompt").fill(text);
  }

  async unsent() {
    return await this.at("prompt").inputValue();
  }

  /** What axe finds in the chat, without what is minor. */
  async faults() {
    await this.page.evaluate(AXE);
    const violations = await this.page.evaluate(async () => (await window.axe.run()).violations);
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} ${target.join(" ")}: ${failureSummary}`));
  }

  /** What the webview may load, and what its document has. */
  async document() {
    return await this.page.evaluate(() => ({
      policy: document.querySelector("meta[http-equiv=Content-Security-Policy]").content,
      scripts: document.scripts.length,
      html: document.documentElement.outerHTML,
    }));
  }
}
