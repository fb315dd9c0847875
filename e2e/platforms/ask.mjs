// Runs in Node for Windows: the agent's own code looks for the companion, connects, and proposes a change.
// Arguments: the module that exports the agent's client, the file that gets the answer, the file to change and its new text.
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [module, answer, file, text] = process.argv.slice(2);
const write = (value) => writeFileSync(answer, JSON.stringify(value));
// The agents write to it on errors, and may have none here.
console.error = console.debug = console.log = () => {};
process.on('unhandledRejection', (error) => write({ failure: String(error?.stack ?? error) }));
try {
  const { IdeClient } = await import(pathToFileURL(module).href);
  const client = await IdeClient.getInstance();
  await client.connect({ logToConsole: false });
  const state = client.getConnectionStatus();
  const diff = state.status === 'connected' && file ? await client.openDiff(file, text) : undefined;
  write({ platform: process.platform, cwd: process.cwd(), state, diff });
} catch (error) {
  write({ failure: String(error?.stack ?? error) });
}
process.exit(0);
