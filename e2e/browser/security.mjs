// Which requests are allowed and which are refused.
import { createServer, request } from "node:http";
import { play } from "./driver.mjs";

/** A request without a browser. */
function ask(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (part) => (body += part));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    asked.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode, headers: response.headers, body: "" });
    });
    asked.on("error", reject);
    asked.end();
  });
}

await play(async (stage) => {
  const { url } = stage.details;
  const { origin, host, port } = new URL(url);
  const status = {};
  const bodies = {};
  const expect = async (name, path, headers) => {
    const answer = await ask(origin + path, headers);
    status[name] = answer.status;
    bodies[name] = answer.body;
    return answer;
  };
  await expect("page without cookie", "/");
  await expect("script without cookie", "/main.js");
  await expect("unknown key", "/login?key=0000");

  const page = await stage.open(url);
  await page.connected();
  const address = page.page.url();
  const cookies = await stage.context.cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  await expect("used link", new URL(url).pathname + new URL(url).search);
  const again = await stage.open(url);
  const usedLink = await again.page.locator("h1").textContent();
  await again.page.close();

  const { headers } = await expect("page", "/", { cookie });
  await expect("foreign host", "/", { cookie, host: `evil.example:${port}` });
  await expect("foreign origin", "/", { cookie, origin: "http://evil.example" });
  const socket = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  await expect("socket", "/front", { ...socket, cookie, origin });
  await expect("socket without cookie", "/front", { ...socket, origin });
  await expect("socket without origin", "/front", { ...socket, cookie });
  await expect("socket of a foreign origin", "/front", { ...socket, cookie, origin: "http://evil.example" });
  await expect("socket of the null origin", "/front", { ...socket, cookie, origin: "null" });

  // Requests from a page on another port of this machine include the cookie: cookies ignore ports.
  const foreign = createServer((_request, response) => response.setHeader("content-type", "text/html").end("<title>foreign</title>"));
  await new Promise((listening) => foreign.listen(0, "127.0.0.1", listening));
  const stranger = await stage.context.newPage();
  await stranger.goto(`http://127.0.0.1:${foreign.address().port}/`);
  const fromForeignPage = await stranger.evaluate(async (host) => {
    const socket = await new Promise((resolve) => {
      const socket = new WebSocket(`ws://${host}/front`);
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("refused");
    });
    const read = await fetch(`http://${host}/`, { credentials: "include" }).then(
      () => "read",
      () => "refused",
    );
    const frame = document.createElement("iframe");
    frame.src = `http://${host}/`;
    document.body.append(frame);
    await new Promise((loaded) => frame.addEventListener("load", loaded));
    return { socket, read };
  }, host);
  // A refused frame shows a page of the browser.
  const framed = stranger.frames().some((frame) => frame.url().startsWith(origin));
  foreign.close();
  return {
    address,
    cookies,
    status,
    bodies,
    usedLink,
    headers,
    fromForeignPage,
    framed,
    readable: await page.page.evaluate(() => document.cookie),
  };
});
