// The companion is killed, and another program listens on its port until it is back.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { play } from "./driver.mjs";

/** A text frame from a server, shorter than 126 bytes or 64 KiB. */
function frame(text) {
  const bytes = Buffer.from(text);
  const length = bytes.length < 126 ? [bytes.length] : [126, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from([0x81, ...length]), bytes]);
}

/** The text of a client's first frame; empty until it is complete. */
function unframed(bytes) {
  if (bytes.length < 8) return "";
  const short = bytes[1] & 127;
  const start = short < 126 ? 2 : 4;
  const length = short < 126 ? short : bytes.readUInt16BE(2);
  const mask = bytes.subarray(start, start + 4);
  const text = bytes.subarray(start + 4, start + 4 + length);
  return text.length < length ? "" : Buffer.from(text.map((byte, index) => byte ^ mask[index % 4])).toString();
}

/** A program that pretends to be the companion, as well as it can without knowing a secret. Resolves once it was refused. */
async function pretend(port) {
  const received = { heads: [], messages: [] };
  const server = createServer((asked, response) => {
    received.heads.push(asked.rawHeaders.join("\n"));
    response.end();
  });
  const refused = new Promise((resolve) => {
    server.on("upgrade", (asked, socket) => {
      received.heads.push(asked.rawHeaders.join("\n"));
      const accept = createHash("sha1")
        .update(`${asked.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64");
      socket.write(`HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
      socket.write(frame(JSON.stringify({ nonce: "0".repeat(64) })));
      let bytes = Buffer.alloc(0);
      socket.on("data", (part) => {
        bytes = Buffer.concat([bytes, part]);
        if (received.messages.length > 0) {
          // The frame that closes; a program that wants to annoy would not end the connection now.
          socket.end();
          return;
        }
        if (!unframed(bytes)) return;
        received.messages.push(unframed(bytes));
        bytes = Buffer.alloc(0);
        // The page's own proof, sent back, and a session of its own.
        const { proof } = JSON.parse(received.messages[0]);
        socket.write(frame(JSON.stringify({ proof, session: "1".repeat(64) })));
      });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        received.rest = bytes.toString("latin1");
        if (received.messages.length > 0) resolve();
      });
    });
  });
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  await refused;
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  return received;
}

await play(async (stage) => {
  const page = await stage.open(stage.details.url);
  await page.connected();
  const secret = () => page.page.evaluate(() => sessionStorage.getItem("alongside:session"));
  const session = await secret();
  const { port } = new URL(stage.details.url);
  await stage.reached("connected");
  const received = await pretend(Number(port));
  const state = await page.page.locator("body").getAttribute("data-connection");
  await stage.reached("refused");
  await page.connected();
  return { session, received, state, isSame: (await secret()) === session };
});
