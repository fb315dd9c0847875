// What the scenarios of the chat share: the words of the chat's part of the page.
import { ReviewPage } from "./driver.mjs";

/** Runs in every page: the WebSockets are kept, so that a scenario can cut them. */
export const SOCKETS = `window.sockets = [];
const Original = WebSocket;
window.WebSocket = class extends Original {
  constructor(...parameters) {
    super(...parameters);
    window.sockets.push(this);
  }
};`;

/** Every byte that the pages of this context receive, as text. Call it before a page is opened. */
export function recordAll(context) {
  const received = [];
  const waits = [];
  context.on("response", (response) => {
    received.push(JSON.stringify(response.headers()));
    waits.push(
      response.text().then(
        (text) => received.push(text),
        () => undefined,
      ),
    );
  });
  context.on("page", (page) => {
    page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => received.push(String(payload))));
  });
  return async () => {
    await Promise.all(waits);
    return received;
  };
}

export class ChatPage extends ReviewPage {
  /** Opens a page, and there the chat. */
  static async open(stage, url, viewport) {
    const { page } = await stage.open(url, viewport);
    const chat = new ChatPage(page);
    await chat.connected();
    await chat.at("place-chat").click();
    await page.locator("body[data-place=chat]").waitFor();
    return chat;
  }

  /** Chooses an agent and waits until it is there. */
  async choose(agent) {
    await this.page.locator(`[data-testid=choose-agent][data-agent=${agent}]`).first().click();
    await this.there();
  }

  /**
   * Waits until there is a session. A daemon on a busy machine may need longer for its agent than it grants itself; it says so, and
   * a person tries again.
   */
  async there() {
    for (let attempt = 0; ; attempt++) {
      await this.page.locator("[data-testid=locality]:visible, [data-testid=status].problem").first().waitFor();
      if (await this.at("locality").isVisible()) return;
      const problem = await this.at("status").textContent();
      if (attempt === 5 || !problem.includes("timed out")) throw new Error(problem);
      await this.page.locator("[data-testid=reopen]:visible, [data-testid=connect-again]:visible").first().click();
      await this.page.locator("[data-testid=status]:not(.problem)").waitFor({ state: "attached" });
    }
  }

  /** Says something and waits until it has arrived. */
  async say(text) {
    await this.at("prompt").fill(text);
    await this.at("prompt").press("Enter");
    await this.page.waitForFunction(() => document.querySelector("[data-testid=prompt]").value === "");
  }

  /** Waits until the agent is at rest, after this many turns. */
  async rest() {
    await this.page.waitForFunction(() => document.querySelector("[data-testid=stop]").hidden);
  }

  /** All answers, one after the other. */
  async answers() {
    return this.at("answer").allTextContents();
  }

  async until(text) {
    await this.page.locator("[data-testid=answer]", { hasText: text }).last().waitFor();
  }

  /** What people said. */
  async said() {
    return this.at("user").allTextContents();
  }

  /** Waits for an approval that can be answered, and gives what it offers. */
  async asked() {
    await this.page.locator("[data-testid=approval][data-armed=true]").waitFor();
    return this.at("option").evaluateAll((options) => options.map(({ dataset }) => ({ id: dataset.option, kind: dataset.kind })));
  }

  /** Cuts the WebSocket of the page, and waits until it has come back. */
  async cut() {
    await this.page.evaluate(() => {
      for (const socket of window.sockets) socket.close();
    });
    await this.page.locator("body[data-connection=lost]").waitFor();
    await this.page.locator("body[data-connection=open]").waitFor();
  }
}
