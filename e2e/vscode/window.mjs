// The page object of a VS Code window. Every method waits until what it does is visible.
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { ChatView } from "./chat-view.mjs";

const quoted = (text) => JSON.stringify(text);

export class Window {
  constructor(page, url) {
    this.page = page;
    this.url = url;
    /** Everything that was sent to the frames of the page. */
    this.messages = [];
    page.on("dialog", (dialog) => void dialog.accept());
  }

  /** Opens a folder or a workspace file, and waits until the extension shows itself. */
  async open({ folder, workspace }) {
    const url = new URL(this.url);
    if (workspace) url.searchParams.set("workspace", workspace);
    else url.searchParams.set("folder", folder);
    await this.page.goto(url.href);
    await this.ready();
    if (workspace) await this.folders();
  }

  /** VS Code sometimes opens a workspace without reading its folders. */
  async folders() {
    const none = this.page.getByText("You have not yet added a folder to the workspace.");
    const some = this.page.locator(".explorer-folders-view .monaco-list-row").first();
    await none.or(some).first().waitFor();
    while (await none.isVisible()) {
      await this.reload();
      await none.or(some).first().waitFor();
    }
  }

  async reload() {
    await this.page.reload();
    await this.ready();
  }

  async close() {
    await this.page.close();
  }

  async ready() {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.page.locator(".statusbar-item[id^='alongside.']").first().waitFor();
  }

  /** Opens a file by its absolute path, with the cursor at a line and a column, both from 1. */
  async openFile({ path, line = 1, column = 1 }) {
    await this.choose("Control+P", `${path}:${line}:${column}`, basename(path));
    await this.tabOf(basename(path), ".active").waitFor();
    await this.page.locator(".editor-group-container.active .monaco-editor.focused").first().waitFor();
  }

  /** Runs a command of the palette by its whole title. */
  async command({ title }) {
    await this.choose("F1", `>${title}`, title);
  }

  /** Types into the box that a key opens, and takes the row with a label. */
  async choose(key, text, label) {
    const box = this.page.locator(".quick-input-widget");
    await this.page.keyboard.press(key);
    await box.locator("input").fill(text);
    await box.locator(`.monaco-list-row[aria-label*=${quoted(label)}]`).first().click();
    await box.waitFor({ state: "hidden" });
  }

  async press({ key }) {
    await this.page.keyboard.press(key);
  }

  async type({ text }) {
    await this.page.keyboard.type(text);
  }

  tabOf(name, state = "") {
    return this.page.locator(`.tab${state}[data-resource-name=${quoted(name)}]`);
  }

  /** The tabs, in order. */
  async tabs() {
    return await this.page.locator(".tab").evaluateAll((tabs) =>
      tabs.map((tab) => ({
        name: tab.dataset.resourceName ?? tab.textContent,
        label: tab.getAttribute("aria-label"),
        active: tab.classList.contains("active"),
        dirty: tab.classList.contains("dirty"),
      })),
    );
  }

  async closeActiveTab() {
    await this.page.locator(".editor-group-container.active .tab.active .tab-actions .action-label").click();
  }

  /** Waits for a review's diff, and for its lenses if it has any. */
  async diff({ lenses = true } = {}) {
    await this.modified().locator(".view-line").first().waitFor();
    // The first one may belong to an editor that is hidden.
    if (lenses) await this.page.locator(".codelens-decoration a:visible").first().waitFor();
  }

  /** Waits for this many diffs in one editor. */
  async diffs({ count }) {
    await this.page.locator(`:nth-match(.monaco-diff-editor .editor.modified .view-line:first-child, ${count})`).waitFor();
  }

  /** Waits until no diff is shown. */
  async noDiff() {
    await this.page.locator(".monaco-diff-editor").waitFor({ state: "detached" });
  }

  modified() {
    return this.page.locator(".monaco-diff-editor .editor.modified");
  }

  /** The visible lines of the draft, from the top. */
  async draft() {
    const lines = await this.modified()
      .locator(".view-line")
      .evaluateAll((lines) => lines.map((line) => [Number.parseFloat(line.style.top), line.textContent]));
    return lines.sort(([one], [other]) => one - other).map(([, text]) => text.replaceAll("\u00a0", " "));
  }

  /** Waits until a visible line of the draft has exactly this text. */
  async draftLine({ text, missing = false }) {
    const line = this.draftLineWith(text);
    await line.first().waitFor({ state: missing ? "detached" : "attached" });
  }

  draftLineWith(text) {
    const pattern = text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" ", "[ \u00a0]");
    return this.modified().locator(".view-line").filter({ hasText: new RegExp(`^${pattern}$`) });
  }

  /** Puts the cursor at the end of the draft's line with this text. */
  async clickDraft({ text }) {
    await this.draftLineWith(text).first().click({ position: { x: 3, y: 8 } });
    await this.page.keyboard.press("End");
  }

  /** The texts of the lenses, from the top. */
  async lenses() {
    const lenses = await this.page
      .locator(".codelens-decoration:visible")
      .evaluateAll((lenses) => lenses.map((lens) => [lens.getBoundingClientRect().top, lens.textContent]));
    return lenses.sort(([one], [other]) => one - other).map(([, text]) => text.replaceAll("\u00a0", " "));
  }

  /** VS Code sometimes draws none of the new lenses; it asks for them again when the editor gets the focus. */
  async focusAgain() {
    const box = this.page.locator(".quick-input-widget");
    await this.page.keyboard.press("F1");
    await box.waitFor();
    await this.page.keyboard.press("Escape");
    await box.waitFor({ state: "hidden" });
  }

  /** Clicks a lens with this text, the first or another one. */
  async clickLens({ text, index = 0 }) {
    const lens = this.page.locator(".codelens-decoration a", { hasText: text }).nth(index);
    const clickable = await lens.waitFor({ timeout: 5000 }).then(() => true, () => false);
    if (!clickable) {
      // The draft that has the focus is asked again when it gets it back.
      await this.focusAgain();
      await this.clickIntoDrafts();
    }
    await lens.click();
  }

  /**
   * VS Code asks for no lenses once an editor has lost the focus. What it shows until the editor has it again are the
   * texts of earlier lenses, which can't be clicked. A draft that is decided has none.
   */
  async clickIntoDrafts() {
    for (const draft of await this.page.locator(".monaco-diff-editor .editor.modified:visible").all()) {
      await draft.locator(".view-line").first().click({ position: { x: 3, y: 8 } });
      await draft.locator(".codelens-decoration a").first().waitFor({ timeout: 5000 }).catch(() => undefined);
    }
  }

  /** Waits until a lens, or a part of it, has this text. */
  async lens({ text, missing = false }) {
    const lens = this.page.locator(".codelens-decoration", { hasText: text }).first();
    await lens.waitFor({ state: missing ? "detached" : "attached" });
  }

  /** Waits until the draft's line with this text is underlined as an error. */
  async errorAt({ text }) {
    await this.draftLineWith(text).first().waitFor();
    await this.modified().locator(".squiggly-error").first().waitFor();
  }

  async noError() {
    await this.modified().locator(".squiggly-error").first().waitFor({ state: "detached" });
  }

  /** Takes a code action at the cursor. */
  async codeAction({ title }) {
    // The key means nothing before the extension has been asked.
    await this.page.locator(".codicon-gutter-lightbulb:visible, .lightBulbWidget:visible").first().waitFor();
    await this.page.keyboard.press("Control+.");
    await this.page.locator(".action-widget .monaco-list-row", { hasText: title }).first().click();
  }

  /** Comments on the line of the cursor, and clicks a button below the comment. */
  async comment({ text, button }) {
    await this.command({ title: "Add Comment on Current Selection" });
    const widget = this.page.locator(".review-widget");
    await widget.locator(".comment-form .monaco-editor.focused").waitFor();
    await this.page.keyboard.type(text);
    await widget.locator(".monaco-button:not(.disabled)", { hasText: button }).click();
  }

  /** Clicks VS Code's own arrow that reverts the hunk with a line of the draft. */
  async revertArrow({ text }) {
    await this.clickDraft({ text });
    const { y } = await this.draftLineWith(text).first().boundingBox();
    const arrows = this.page.locator(".monaco-diff-editor .codicon-arrow-right:visible");
    await arrows.first().waitFor();
    const distances = await arrows.evaluateAll((all, y) => all.map((arrow) => Math.abs(arrow.getBoundingClientRect().y - y)), y);
    await arrows.nth(distances.indexOf(Math.min(...distances))).click({ force: true });
  }

  /** Takes an entry of the menu of a line number in the draft. */
  async lineNumberMenu({ line, title }) {
    const numbers = this.modified().locator(".margin-view-overlays .line-numbers", { hasText: new RegExp(`^${line}$`) });
    await numbers.first().click({ button: "right" });
    const menu = this.page.locator(".context-view .monaco-menu");
    const entry = menu.locator(".action-label", { hasText: title }).first();
    await entry.waitFor();
    // VS Code ignores a click on a menu that has only just opened.
    while (await menu.isVisible()) {
      await entry.click({ timeout: 1000 }).catch(() => undefined);
      await menu.waitFor({ state: "hidden", timeout: 1000 }).catch(() => undefined);
    }
  }

  /** Shows the extension's side bar. */
  async openSideBar() {
    await this.command({ title: "Alongside: Focus on Pending Changes View" });
    await this.list().waitFor();
  }

  list() {
    return this.page.locator(".pane", { has: this.page.locator(".pane-header[aria-label*='Pending Changes']") });
  }

  /** Waits until the side bar lists these files with these details, in this order, and the badge has their number. */
  async listed({ rows }) {
    for (const [index, text] of rows.entries()) {
      await this.list().locator(`.monaco-list-row[data-index="${index}"]`, { hasText: text }).waitFor();
    }
    await this.list().locator(`.monaco-list-row[data-index="${rows.length}"]`).waitFor({ state: "detached" });
    const badge = this.page.locator(".activitybar .action-item:has([aria-label^=Alongside]) .badge-content");
    if (rows.length > 0) await badge.filter({ hasText: `${rows.length}` }).waitFor();
    else await badge.waitFor({ state: "hidden" });
  }

  /** Clicks an icon of a row in the side bar. */
  async rowAction({ file, label }) {
    const row = this.list().locator(".monaco-list-row", { hasText: file }).first();
    await row.hover();
    await row.locator(`.action-label[aria-label*=${quoted(label)}]`).click();
  }

  /** Clicks the extension's text in the status bar, and takes the row with a label. */
  async menu({ label }) {
    await this.page.locator(".statusbar-item[id^='alongside.'] a").first().click();
    const box = this.page.locator(".quick-input-widget");
    await box.locator(`.monaco-list-row[aria-label*=${quoted(label)}]`).first().click();
    await box.waitFor({ state: "hidden" });
  }

  /** Renames a file in the explorer. */
  async rename({ from, to }) {
    const row = await this.explorerRow(from);
    await this.page.keyboard.press("F2");
    await this.page.locator(".explorer-folders-view input").fill(to);
    await this.page.keyboard.press("Enter");
    await row.waitFor({ state: "detached" });
  }

  /** Deletes a file in the explorer. */
  async remove({ name }) {
    const row = await this.explorerRow(name);
    await this.page.keyboard.press("Delete");
    await this.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Delete" }).first().click();
    await row.waitFor({ state: "detached" });
  }

  async explorerRow(name) {
    await this.command({ title: "View: Show Explorer" });
    const row = this.page.locator(`.explorer-folders-view .monaco-list-row[aria-label=${quoted(name)}]`);
    await row.click();
    await this.page.locator(`.explorer-folders-view .monaco-list-row.focused[aria-label=${quoted(name)}]`).waitFor();
    return row;
  }

  /** Clicks an icon in the editor's title. */
  async titleAction({ label }) {
    await this.page
      .locator(`.editor-group-container.active .editor-actions .action-label[aria-label*=${quoted(label)}]`)
      .first()
      .click();
  }

  /** The texts of dialogs in front of the window. */
  async dialogs() {
    return await this.page.locator(".monaco-dialog-box").allTextContents();
  }

  async notifications() {
    return await this.page.locator(".notification-list-item-message").allTextContents();
  }

  /** Waits for a notification with this text, and clicks one of its buttons. */
  async notification({ text, button }) {
    const notification = this.page.locator(".notification-list-item", { hasText: text }).first();
    await notification.waitFor();
    if (button) await notification.locator(".monaco-button", { hasText: button }).click();
  }

  /** Waits until the list of extensions has exactly these. */
  async extensions({ names }) {
    const rows = this.page.locator(".extensions-viewlet .extensions-list .monaco-list-row");
    for (const [index, name] of names.entries()) await rows.nth(index).filter({ hasText: name }).waitFor();
    await rows.nth(names.length).waitFor({ state: "detached" });
  }

  /** The extension's text in the status bar. */
  async status() {
    return await this.page.locator(".statusbar-item[id^='alongside.']").allTextContents();
  }

  /** Waits until the extension's text in the status bar contains this. */
  async statusWith({ text, timeout }) {
    await this.page.locator(".statusbar-item[id^='alongside.']", { hasText: text }).first().waitFor({ timeout });
  }

  /** Opens a terminal and waits for its shell's prompt. */
  async openTerminal() {
    await this.command({ title: "Terminal: Create New Terminal" });
    await this.terminalShows({ text: "shell\\$" });
    await this.page.locator(".terminal.xterm.focus").waitFor();
  }

  /** Waits until the terminal's text matches a pattern. */
  async terminalShows({ text }) {
    const rows = this.page.locator(".terminal-wrapper.active .xterm-rows");
    await rows.filter({ hasText: new RegExp(text) }).waitFor();
  }

  /** Pastes into the terminal, and waits until it shows the end. */
  async paste({ text, shown }) {
    await this.page.keyboard.insertText(text);
    await this.terminalShows({ text: shown });
  }

  async terminal() {
    const rows = await this.page.locator(".terminal-wrapper.active .xterm-rows > div").allTextContents();
    return rows.map((row) => row.replaceAll("\u00a0", " ")).join("\n");
  }

  /** Shows the chat and waits until it is connected. */
  async openChat() {
    await this.command({ title: "Alongside: Focus on Chat View" });
    this.chatView = await ChatView.of(this.page);
  }

  /** Hides the chat, which unloads it, and waits until it is gone. */
  async hideChat() {
    await this.command({ title: "View: Show Explorer" });
    await this.page.locator("iframe.webview").waitFor({ state: "detached" });
  }

  /** Calls a method of the chat. */
  async chat({ method, parameters = [] }) {
    return await this.chatView[method](...parameters);
  }

  /** Everything that was sent to the frames of the window, webviews among them. */
  async received() {
    return this.messages;
  }

  /** Runs the command that stores the daemon's token. */
  async storeDaemonToken({ token }) {
    const box = this.page.locator(".quick-input-widget");
    await this.page.keyboard.press("F1");
    await box.locator("input").fill(">Alongside: Store the Daemon's Token");
    await box.locator(".monaco-list-row", { hasText: "Store the Daemon's Token" }).first().click();
    await box.locator("input[type=password]").fill(token);
    await this.page.keyboard.press("Enter");
    await this.page.locator(".statusbar-item", { hasText: "Token stored" }).waitFor();
  }

  /** A picture of the window, or of the part of it with this class. */
  async screenshot({ path, part }) {
    mkdirSync(dirname(path), { recursive: true });
    const subject = part ? this.page.locator(`.part.${part}`) : this.page;
    await subject.screenshot({ path, animations: "disabled", caret: "hide" });
  }

  /** Folds a section of the side bar. */
  async fold({ section }) {
    await this.page.locator(`.pane-header.expanded[aria-label*=${quoted(section)}]`).click();
  }

  /** Saves what is shown. */
  async keep({ directory }) {
    await this.screenshot({ path: `${directory}/window.png` });
    writeFileSync(`${directory}/window.html`, await this.page.content());
  }
}
