// Written by `alongside install opencode`, removed by `alongside uninstall opencode`.
//
// Before opencode changes a file, `alongside hook opencode` asks you. Whatever goes wrong here, the change is not made.
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

const installed = "@PROGRAM@";
const tools = new Set(["edit", "write", "multiedit", "patch", "apply_patch"]);

/** The hooks that are waiting, by session. */
const waiting = new Map();
/** What the model must know about an edited change, by call. */
const notes = new Map();

/** The program that installed this or, if it was moved, the one on the PATH; undefined if there is none. */
function findProgram() {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute);
  return [installed, ...folders.map((folder) => join(folder, "alongside"))].find((program) => {
    try {
      accessSync(program, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Starts the hook, and resolves to what it prints. */
function ask(program, call) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["hook", "opencode"], { stdio: "pipe" });
    const hooks = waiting.get(call.session_id) ?? new Set();
    waiting.set(call.session_id, hooks);
    const cancel = (reason) => {
      child.kill("SIGTERM");
      reject(new Error(reason));
    };
    hooks.add(cancel);
    const printed = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8");
      child[name].on("data", (text) => {
        printed[name] += text;
      });
    }
    const end = () => {
      hooks.delete(cancel);
      if (hooks.size === 0) waiting.delete(call.session_id);
    };
    child.on("error", (error) => {
      end();
      reject(new Error(`Nothing was written: alongside cannot be started (${error.message}).`));
    });
    child.on("close", (code) => {
      end();
      try {
        if (code !== 0) throw new Error();
        resolve(JSON.parse(printed.stdout));
      } catch {
        reject(new Error(printed.stderr.trim() || "Nothing was written: the review ended without a decision."));
      }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(call));
  });
}

/** opencode does not end the hook when you press Esc, and would write after a late acceptance. */
function cancelAll(sessions, reason) {
  for (const session of sessions) for (const cancel of waiting.get(session) ?? []) cancel(reason);
}

export const Alongside = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (!tools.has(input.tool)) return;
    const program = findProgram();
    if (program === undefined) return;
    const answer = await ask(program, {
      hook_event_name: "tool.execute.before",
      session_id: input.sessionID,
      call_id: input.callID,
      cwd: directory,
      tool_name: input.tool,
      tool_input: output.args,
    });
    if (answer.decision !== "allow") throw new Error(answer.reason || "The user rejected this change.");
    if (answer.tool_input) {
      // In place: opencode ignores another object.
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.tool_input);
    }
    if (answer.note) notes.set(input.callID, answer.note);
  },
  "tool.execute.after": async (input, output) => {
    const note = notes.get(input.callID);
    if (notes.delete(input.callID)) output.output += `\n\n${note}`;
  },
  event: async ({ event }) => {
    const isOver = ["session.idle", "session.error", "session.deleted"].includes(event.type);
    const session = event.properties?.sessionID;
    if (isOver && session) cancelAll([session], "Nothing was written: you cancelled the review.");
  },
  dispose: async () => cancelAll([...waiting.keys()], "Nothing was written: opencode is closing."),
});
