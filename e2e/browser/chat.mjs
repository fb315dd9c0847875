// What the chat scenarios share: a page object for the chat.
import { ReviewPage } from "./driver.mjs";

/** Runs in every page: keeps the WebSockets, so that a scenario can cut them. */
export const SOCKETS = `window.sockets = [];
const Original = WebSocket;
window.WebSocket = class extends Original {
  constructor(...parameters) {
    super(...parameters);
    window.sockets.push(this);
  }
};`;

/** Records everything that the pages of this context receive, as text. Call it before opening a page. */
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
  /** Opens a page and switches to the chat. */
  static async open(stage, url, viewport) {
    const { page } = await stage.open(url, viewport);
    const chat = new ChatPage(page);
    await chat.connected();
    await chat.at("view-chat").click();
    await page.locator("body[data-view=chat]").waitFor();
    return chat;
  }

  /** Chooses an agent and waits until it is connected. */
  async choose(agent) {
    await this.page.locator(`[data-testid=choose-agent][data-agent=${agent}]`).first().click();
    await this.there();
  }

  /**
   * Waits for a session. On a busy machine a daemon's agent may exceed the daemon's own timeout; then try again, as a user
   * would.
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

  /** Sends a message and waits until it was received. */
  async send(text) {
    await this.at("prompt").fill(text);
    await this.at("prompt").press("Enter");
    await this.page.waitForFunction(() => document.querySelector("[data-testid=prompt]").value === "");
  }

  /** Queues a message during a turn and waits until it is in the queue. */
  async queue(text) {
    const before = await this.at("queued").count();
    await this.at("prompt").fill(text);
    await this.at("prompt").press("Alt+Enter");
    await this.page.waitForFunction((count) => document.querySelectorAll("[data-testid=queued]").length > count, before);
  }

  /** Queues two messages during a turn, removes the first, and lets the second be answered. Returns what was shown. */
  async queueTwoAndRemoveOne({ slow, removed, kept }) {
    await this.send(slow);
    await this.until("slow3");
    await this.queue(removed);
    await this.queue(kept);
    const queued = await this.at("queued").count();
    await this.at("unqueue").first().click();
    await this.page.waitForFunction(() => document.querySelectorAll("[data-testid=queued]").length === 1);
    const afterRemoval = await this.at("queued").count();
    await this.at("stop").click();
    await this.until("The kept one.");
    await this.rest();
    const said = await this.said();
    await this.page.reload();
    await this.connected();
    await this.until("The kept one.");
    return { queued, afterRemoval, said, saidReloaded: await this.said() };
  }

  /** The conversation in short, in order: messages with their first words, and the kinds of everything else. */
  async said() {
    const places = "[data-testid=user], [data-testid=answer], [data-testid=tool], [data-testid=chat-notice]";
    return this.page.locator(places).evaluateAll((items) =>
      items.map((item) => {
        const { testid } = item.dataset;
        if (testid !== "user") return testid.replace("chat-", "");
        const words = item.querySelector(".as-written").textContent;
        return `user ${words.startsWith("DO ") ? "DO" : words}`;
      }),
    );
  }

  /** Waits until the agent is idle. */
  async rest() {
    await this.page.waitForFunction(() => document.querySelector("[data-testid=composer]").dataset.turn === "none");
  }

  async answers() {
    return this.at("answer").allTextContents();
  }

  async until(text) {
    await this.page.locator("[data-testid=answer]", { hasText: text }).last().waitFor();
  }

  /** The user messages, without their buttons. */
  async messages() {
    return this.at("user").evaluateAll((messages) =>
      messages.map((message) =>
        [...message.children]
          .filter((part) => part.tagName !== "BUTTON")
          .map((part) => part.textContent)
          .join(""),
      ),
    );
  }

  /** Waits for a permission request that can be answered, and returns its options. */
  async asked() {
    await this.page.locator("[data-testid=approval][data-armed=true]").waitFor();
    return this.at("option").evaluateAll((options) => options.map(({ dataset }) => ({ id: dataset.option, kind: dataset.kind })));
  }

  /** Cuts the page's WebSocket and waits for the reconnect. */
  async cut() {
    await this.page.evaluate(() => {
      for (const socket of window.sockets) socket.close();
    });
    await this.page.locator("body[data-connection=lost]").waitFor();
    await this.page.locator("body[data-connection=open]").waitFor();
  }
}
