import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bridgeEnvironment, chooseDaemon, type DaemonSources } from "../src/daemon-settings";

const ONE = "http://127.0.0.1:1001";
const TWO = "http://127.0.0.1:1002";
const THREE = "http://127.0.0.1:1003";
const DEFAULT = "http://127.0.0.1:4170";
const OFF = { use: false };

function choose({ own = {}, qwen = {}, storedToken, environment = {} }: Partial<DaemonSources>) {
  return chooseDaemon({ own, qwen, storedToken, environment });
}

const uses = (url: string, token?: string) => ({ use: true, url, token });

const TABLE: readonly [string, Partial<DaemonSources>, object][] = [
  ["off by default", {}, OFF],
  ["an address alone does not enable it", { own: { url: ONE }, qwen: { url: TWO }, storedToken: "t" }, OFF],
  ["enabled here", { own: { enabled: true, url: ONE } }, uses(ONE)],
  ["enabled without an address", { own: { enabled: true } }, uses(DEFAULT)],
  ["enabled with an empty address", { own: { enabled: true, url: " " } }, uses(DEFAULT)],
  ["the draft's names", { qwen: { enabled: true, url: TWO, token: "q" } }, uses(TWO, "q")],
  ["the environment", { environment: { QWEN_IDE_DAEMON_URL: THREE, QWEN_SERVER_TOKEN: "e" } }, uses(THREE, "e")],
  ["an empty variable is not set", { environment: { QWEN_IDE_DAEMON_URL: "" } }, OFF],
  ["disabled here", { own: { enabled: false }, qwen: { enabled: true }, environment: { QWEN_IDE_DAEMON_URL: THREE } }, OFF],
  ["disabled by the draft's name", { qwen: { enabled: false }, environment: { QWEN_IDE_DAEMON_URL: THREE } }, OFF],
  ["enabled here, disabled there", { own: { enabled: true }, qwen: { enabled: false, url: TWO } }, uses(TWO)],
  ["own address first", { own: { enabled: true, url: ONE }, qwen: { url: TWO }, environment: { QWEN_IDE_DAEMON_URL: THREE } }, uses(ONE)],
  ["then the draft's", { own: { enabled: true }, qwen: { url: TWO }, environment: { QWEN_IDE_DAEMON_URL: THREE } }, uses(TWO)],
  ["then the variable", { own: { enabled: true }, environment: { QWEN_IDE_DAEMON_URL: THREE } }, uses(THREE)],
  [
    "stored token first",
    { own: { enabled: true }, storedToken: "s", qwen: { token: "q" }, environment: { QWEN_SERVER_TOKEN: "e" } },
    uses(DEFAULT, "s"),
  ],
  ["then the draft's token", { own: { enabled: true }, qwen: { token: "q" }, environment: { QWEN_SERVER_TOKEN: "e" } }, uses(DEFAULT, "q")],
  [
    "then the variable's token",
    { own: { enabled: true }, qwen: { token: "" }, environment: { QWEN_SERVER_TOKEN: "e" } },
    uses(DEFAULT, "e"),
  ],
  ["https and IPv6", { own: { enabled: true, url: "https://[::1]:4170/" } }, uses("https://[::1]:4170/")],
];

for (const [name, sources, expected] of TABLE) {
  test(`daemon: ${name}`, () => assert.deepEqual(choose(sources), expected));
}

test("an invalid address is reported with the name of its setting and without the address", () => {
  const invalid = [
    "127.0.0.1:4170",
    "ftp://127.0.0.1",
    "http://me:s3cret@127.0.0.1:1",
    "http://example.com",
    "http://127.0.0.1:1/?t=s3cret",
  ];
  for (const url of invalid) {
    const places: [Partial<DaemonSources>, string][] = [
      [{ own: { enabled: true, url } }, "alongside.daemon.url"],
      [{ qwen: { enabled: true, url } }, "qwen-code.experimentalDaemon.url"],
      [{ environment: { QWEN_IDE_DAEMON_URL: url } }, "QWEN_IDE_DAEMON_URL"],
    ];
    for (const [sources, setting] of places) {
      const choice = choose(sources);
      assert.ok("problem" in choice, url);
      assert.equal(choice.setting, setting);
      assert.ok(choice.problem.startsWith(`invalid ${setting}: it `), choice.problem);
      assert.ok(!choice.problem.includes("s3cret") && !choice.problem.includes("example"), choice.problem);
    }
  }
});

test("the companion's environment has the chosen daemon and no other", () => {
  const environment = { PATH: "/bin", QWEN_IDE_DAEMON_URL: THREE, QWEN_SERVER_TOKEN: "e" };
  assert.deepEqual(bridgeEnvironment(environment, { use: false }), { PATH: "/bin", QWEN_SERVER_TOKEN: "e" });
  assert.deepEqual(bridgeEnvironment(environment, { use: true, url: ONE, token: "t" }), {
    PATH: "/bin",
    QWEN_IDE_DAEMON_URL: ONE,
    QWEN_SERVER_TOKEN: "t",
  });
});

test("the workspace cannot choose the daemon, and no setting has its token", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const { properties } = manifest.contributes.configuration;
  const daemon = Object.keys(properties).filter((name) => name.includes("daemon"));
  assert.deepEqual(daemon, ["alongside.daemon.enabled", "alongside.daemon.url"]);
  for (const name of daemon) {
    assert.equal(properties[name].scope, "machine");
    assert.ok(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes(name));
  }
  assert.equal(properties["alongside.daemon.enabled"].default, false);
  assert.ok(Object.keys(properties).every((name) => name.startsWith("alongside.")));
});
