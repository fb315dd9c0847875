// Connects to the named pipe in Copilot CLI's lock file, in Node for Windows, as Copilot CLI does. Node fails on a pipe as stdout, so the
// result is written to a file.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";

const [, , resultFile] = process.argv;
const folder = join(homedir(), ".copilot", "ide");
const [name] = readdirSync(folder).filter((file) => file.endsWith(".lock"));
const lock = JSON.parse(readFileSync(join(folder, name), "utf8"));
const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "github-copilot-cli", version: "1.0.102" } },
});

/** One request on a connection of its own. */
function post(headers) {
  return new Promise((resolve, reject) => {
    const options = { socketPath: lock.socketPath, path: "/mcp", method: "POST", agent: false, timeout: 20_000, headers };
    const sent = request(options, (response) => {
      let text = "";
      response.on("data", (data) => {
        text += data;
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    sent.on("timeout", () => sent.destroy(new Error("no response")));
    sent.on("error", reject);
    sent.end(body);
  });
}

const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  host: "localhost",
  "x-copilot-session-id": "1",
};
try {
  const refused = await post(headers);
  const accepted = await post({ ...headers, ...lock.headers });
  writeFileSync(resultFile, JSON.stringify({ scheme: lock.scheme, refused: refused.status, accepted }));
} catch (error) {
  writeFileSync(resultFile, JSON.stringify({ scheme: lock.scheme, error: String(error) }));
}
