#!/usr/bin/env node
// Starts the program for this platform. It is in a package of its own, which npm installs as an optional dependency; nothing is
// downloaded here.
"use strict";

const { spawn } = require("node:child_process");
const { isatty } = require("node:tty");

const isWindows = process.platform === "win32";
// Windows on ARM runs programs for x64.
const architecture = isWindows ? "x64" : process.arch;
const name = `@alongside-ide/${process.platform}-${architecture}`;

function fail(message) {
  console.error(`alongside: ${message}`);
  process.exit(1);
}

let program;
try {
  program = require.resolve(`${name}/bin/alongside${isWindows ? ".exe" : ""}`);
} catch {
  const { optionalDependencies } = require("../package.json");
  fail(
    name in optionalDependencies
      ? `cannot find ${name}; install alongside-ide again without --omit=optional`
      : `there is no package for ${process.platform}-${process.arch}; build it with \`cargo install\` instead`,
  );
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these to both processes. A console on Windows does so with all of them, and there `kill` would end the program at
// once, before it has removed its files.
const signals = isWindows ? ["SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"];
// Not `process.stdin`: for a pipe, that makes the program's stdin non-blocking, and its reads fail.
const fromTerminal = isWindows ? signals : isatty(0) ? ["SIGINT", "SIGQUIT"] : [];
for (const signal of signals) {
  process.on(signal, () => {
    if (!fromTerminal.includes(signal)) child.kill(signal);
  });
}
child.on("error", (error) => fail(`cannot start ${program}: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
