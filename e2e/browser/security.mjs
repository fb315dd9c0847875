// Which requests and which tabs are allowed, and what a login leaves behind.
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
  const { origin, host, port, hash } = new URL(url);
  const key = new URLSearchParams(hash.slice(1)).get("key");
  const status = {};
  const expect = async (name, path, headers) => {
    const answer = await ask(origin + path, headers);
    status[name] = answer.status;
    return answer;
  };

  const requested = [];
  stage.context.on("request", (asked) => requested.push(`${asked.url()} ${JSON.stringify(asked.headers())}`));
  const page = await stage.open(url);
  await page.connected();
  const address = page.page.url();
  const session = await page.page.evaluate(() => sessionStorage.getItem("alongside:session"));
  const title = async (tab) => {
    await tab.at("login").waitFor();
    return { title: await tab.page.locator("#login-title").textContent(), text: await tab.at("login").textContent() };
  };

  // Other tabs of the same browser.
  const usedLink = await title(await stage.open(url));
  const sockets = [];
  stage.context.on("page", (tab) => tab.on("websocket", (socket) => sockets.push(socket.url())));
  const bareUrl = { ...(await title(await stage.open(`${origin}/`))), sockets: [...sockets] };
  const [copy] = await Promise.all([
    stage.context.waitForEvent("page"),
    // What "Duplicate tab" does: a new tab with a copy of this one's session storage.
    page.page.evaluate(() => void window.open("/", "_blank")),
  ]);
  await copy.locator("body[data-connection=open]").waitFor();
  await copy.close();
  await page.page.reload();
  await page.connected();

  const { headers } = await expect("page", "/");
  await expect("script", "/main.js");
  await expect("login", `/login?key=${key}`);
  await expect("foreign host", "/", { host: `evil.example:${port}` });
  await expect("foreign origin", "/", { origin: "http://evil.example" });
  const socket = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  await expect("socket", "/front", { ...socket, origin });
  await expect("socket without origin", "/front", socket);
  await expect("socket of a foreign origin", "/front", { ...socket, origin: "http://evil.example" });
  await expect("socket of the null origin", "/front", { ...socket, origin: "null" });

  // A page on another port of this machine.
  const sent = [];
  const foreign = createServer((asked, response) => {
    sent.push(asked.headers.cookie ?? "");
    response.setHeader("content-type", "text/html").end("<title>foreign</title>");
  });
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
    return { socket, read, session: sessionStorage.getItem("alongside:session") };
  }, host);
  // A refused frame shows a page of the browser.
  const framed = stranger.frames().some((frame) => frame.url().startsWith(origin));
  foreign.close();
  return {
    address,
    cookies: await stage.context.cookies(),
    cookiesSent: sent.filter((cookie) => cookie !== ""),
    requestsWithSecrets: requested.filter((asked) => asked.includes(key) || asked.includes(session)),
    hasSession: session?.length === 64,
    usedLink,
    bareUrl,
    status,
    headers,
    fromForeignPage,
    framed,
  };
});
