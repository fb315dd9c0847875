// A companion on Node as one would write it: express and the official SDK, with a transport per session, as the agents' own VS Code
// extensions have it. It keeps proposals and never shows them. Each line on stdin is a context change, as JSON.

import { randomUUID } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import express from "express";
import { z } from "zod";

const DEBOUNCE_MS = 50;
// As in Gemini CLI's extension.
const KEEP_ALIVE_MS = 60_000;

const token = randomUUID();
const transports = new Map();
/** Proposed texts by path. */
const proposals = new Map();
let context = { workspaceState: { openFiles: [], isTrusted: true } };

function createServer() {
  const server = new McpServer({ name: "reference-companion", version: "1.0.0" }, { capabilities: { logging: {} } });
  server.registerTool(
    "openDiff",
    {
      description: "Shows the user a proposed new version of a file.",
      inputSchema: { filePath: z.string(), newContent: z.string() },
    },
    async ({ filePath, newContent }) => {
      const isNew = await stat(filePath).then(() => false, () => true);
      proposals.set(filePath, { newContent, isNew });
      return { content: [] };
    },
  );
  server.registerTool(
    "closeDiff",
    {
      description: "Closes an open review of a file and returns its text.",
      inputSchema: { filePath: z.string(), suppressNotification: z.boolean().optional() },
    },
    async ({ filePath }) => {
      const content = proposals.get(filePath)?.newContent;
      proposals.delete(filePath);
      return { content: [{ type: "text", text: JSON.stringify({ content }) }] };
    },
  );
  return server;
}

function sendContext(transport) {
  transport.send({ jsonrpc: "2.0", method: "ide/contextUpdate", params: context }).catch(() => {});
}

const app = express();
app.use(express.json({ limit: "32mb" }));
app.use((request, response, next) => {
  if (request.headers.origin) {
    response.status(403).json({ error: "Request denied by CORS policy." });
  } else {
    next();
  }
});
app.use((request, response, next) => {
  if (request.headers.host === `127.0.0.1:${port}`) {
    next();
  } else {
    response.status(403).json({ error: "Invalid Host header" });
  }
});
app.use((request, response, next) => {
  if (request.headers.authorization === `Bearer ${token}`) {
    next();
  } else {
    response.status(401).send("Unauthorized");
  }
});

app.post("/mcp", async (request, response) => {
  const id = request.headers["mcp-session-id"];
  let transport = transports.get(id);
  if (!transport && !id && isInitializeRequest(request.body)) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    const keepAlive = setInterval(() => {
      transport.send({ jsonrpc: "2.0", method: "ping" }).catch(() => {});
    }, KEEP_ALIVE_MS);
    transport.onclose = () => {
      clearInterval(keepAlive);
      transports.delete(transport.sessionId);
    };
    await createServer().connect(transport);
  } else if (!transport) {
    response.status(400).json({ jsonrpc: "2.0", error: { code: -32000, message: "No valid session ID" }, id: null });
    return;
  }
  await transport.handleRequest(request, response, request.body);
});

app.get("/mcp", async (request, response) => {
  const transport = transports.get(request.headers["mcp-session-id"]);
  if (!transport) {
    response.status(400).send("Invalid or missing session ID");
    return;
  }
  // An agent never ends its session: it closes the stream.
  response.on("close", () => transport.close());
  await transport.handleRequest(request, response);
  sendContext(transport);
});

let timer;
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { path, cursor, selectedText } = JSON.parse(line);
  const file = { path, timestamp: Date.now(), isActive: true, cursor, selectedText };
  context = { workspaceState: { openFiles: [file], isTrusted: true } };
  timer ??= setTimeout(() => {
    timer = undefined;
    transports.forEach(sendContext);
  }, DEBOUNCE_MS);
});

let port;
const listener = app.listen(0, "127.0.0.1", () => {
  port = listener.address().port;
  const directory = join(tmpdir(), "gemini", "ide");
  const path = join(directory, `gemini-ide-server-${process.ppid}-${port}.json`);
  const ideInfo = { name: "reference", displayName: "Reference" };
  const text = JSON.stringify({ port, workspacePath: process.cwd(), authToken: token, ideInfo });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  const stop = () => {
    rmSync(path, { force: true });
    process.exit();
  };
  process.on("SIGTERM", stop);
  // The benchmark stopped, or was killed: nothing else would stop this process.
  lines.on("close", stop);
});
