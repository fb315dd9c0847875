// Whether the chat offers a `qwen serve` daemon, and which. Each value is from the first source that has it:
//
// | value   | 1.                         | 2.                                      | 3.                    | otherwise |
// |---------|----------------------------|-----------------------------------------|-----------------------|-----------|
// | whether | `alongside.daemon.enabled` | `qwen-code.experimentalDaemon.enabled`  | `QWEN_IDE_DAEMON_URL` | no        |
// | address | `alongside.daemon.url`     | `qwen-code.experimentalDaemon.url`      | `QWEN_IDE_DAEMON_URL` | the default |
// | token   | the stored one             | `qwen-code.experimentalDaemon.token`    | `QWEN_SERVER_TOKEN`   | none      |

export const URL_VARIABLE = "QWEN_IDE_DAEMON_URL";
export const TOKEN_VARIABLE = "QWEN_SERVER_TOKEN";
export const DEFAULT_URL = "http://127.0.0.1:4170";

export const OWN_SECTION = "alongside.daemon";
/** The names in the draft for Qwen Code's own extension. */
export const QWEN_SECTION = "qwen-code.experimentalDaemon";

/** The user's values; undefined if not set. */
export interface DaemonValues {
  readonly enabled?: boolean | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
}

export interface DaemonSources {
  readonly own: Omit<DaemonValues, "token">;
  readonly qwen: DaemonValues;
  readonly storedToken: string | undefined;
  readonly environment: NodeJS.ProcessEnv;
}

export type DaemonChoice =
  | { readonly use: false }
  | { readonly use: true; readonly url: string; readonly token: string | undefined }
  /** What is wrong, with the name of the setting. */
  | { readonly use: false; readonly problem: string; readonly setting: string };

export function chooseDaemon({ own, qwen, storedToken, environment }: DaemonSources): DaemonChoice {
  const fromEnvironment = filled(environment[URL_VARIABLE]);
  if (!(own.enabled ?? qwen.enabled ?? fromEnvironment !== undefined)) return { use: false };
  const candidates = [
    [filled(own.url), `${OWN_SECTION}.url`],
    [filled(qwen.url), `${QWEN_SECTION}.url`],
    [fromEnvironment, URL_VARIABLE],
    [DEFAULT_URL, "the default address"],
  ] as const;
  const [url = DEFAULT_URL, setting] = candidates.find(([value]) => value !== undefined) ?? candidates[3];
  const problem = urlProblem(url);
  if (problem !== undefined)
    return { use: false, setting, problem: `invalid ${setting}: ${problem}; expected an address such as ${DEFAULT_URL}` };
  return { use: true, url, token: filled(storedToken) ?? filled(qwen.token) ?? filled(environment[TOKEN_VARIABLE]) };
}

/** The companion's environment, which is how it learns the address and the token. Its own settings file may enable a daemon too. */
export function bridgeEnvironment(environment: NodeJS.ProcessEnv, choice: DaemonChoice): NodeJS.ProcessEnv {
  const { [URL_VARIABLE]: _, ...others } = environment;
  if (!choice.use) return others;
  return { ...others, [URL_VARIABLE]: choice.url, ...(choice.token === undefined ? {} : { [TOKEN_VARIABLE]: choice.token }) };
}

/** The companion's rules, so that the user sees a problem where the setting is. The address itself is not repeated: it may have a secret. */
function urlProblem(text: string): string | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return "it is not a URL";
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return "it must use http or https";
  if (url.username !== "" || url.password !== "") return "it must not contain credentials (store the token with the command instead)";
  if (!isLoopback(url.hostname)) return "it must use a loopback address";
  if (url.port === "0") return "its port must be from 1 to 65535";
  if (url.search !== "" || url.hash !== "") return "it must not have a query or fragment";
  return undefined;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

function filled(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed === "" ? undefined : trimmed;
}
