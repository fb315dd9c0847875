// The document of the chat's webview.

export interface ChatDocument {
  /** Where the webview may load styles from. */
  readonly source: string;
  readonly script: string;
  readonly styles: string;
  /** Random, new for each document. */
  readonly nonce: string;
}

/** Only the extension's own script runs, and nothing can be loaded from or sent to the network. */
export function policy({ source, nonce }: ChatDocument): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${source} 'nonce-${nonce}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

export function chatHtml(chat: ChatDocument): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy(chat)}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="style-nonce" content="${chat.nonce}" />
    <title>Chat</title>
    <link rel="stylesheet" href="${chat.styles}" />
  </head>
  <body data-view="chat" data-connection="connecting">
    <div id="connection" class="connection" role="alert" data-testid="connection" hidden>
      <span>The companion is not running.</span>
      <button type="button" id="start-companion" class="quiet" data-testid="start-companion">Start companion</button>
    </div>
    <div id="body" class="body">
      <main id="chat" class="chat" aria-label="Chat" data-testid="chat"></main>
    </div>
    <div id="announcements" class="visually-hidden" role="status" aria-live="polite" data-testid="announcements"></div>
    <script nonce="${chat.nonce}" src="${chat.script}"></script>
  </body>
</html>
`;
}
