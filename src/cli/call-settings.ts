import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { loadConfigFile } from "../settings/config-file.ts";
import type { Settings } from "../settings/declarations.ts";
import { readSettings, type ReadSettings, type SettingSources } from "../settings/read-settings.ts";
import type { Terminal } from "./call.ts";
import { withContext } from "./contexts.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

/** The settings of one call. All faults at once, as usage errors; warnings go to stderr. */
export async function callSettings(
  terminal: Terminal,
  given: {
    readonly flags: NonNullable<SettingSources["flags"]>;
    readonly defaults: Partial<Settings> | undefined;
    readonly config: string | undefined;
    readonly context: string | undefined;
  },
): Promise<ReadSettings> {
  const variables = { ...dotEnv(terminal.directory), ...terminal.env };
  const env = withContext(variables, given.context, given.flags.url !== undefined);
  const file = await loadConfigFile(terminal.directory, given.config ?? env["MILLRACE_CONFIG"]);
  if (file !== undefined && "fault" in file) throw new Failure(EXIT.usage, file.fault);
  const read = readSettings({ flags: given.flags, env, file, defaults: given.defaults ?? {}, readFile: textOf });
  if (read.faults.length > 0) {
    const [first, ...more] = read.faults;
    throw new Failure(EXIT.usage, first!, { lines: more, hint: "docs/settings.md lists all settings" });
  }
  for (const warning of read.warnings) terminal.err(`millrace: ${warning}\n`);
  return read;
}

/** What a `.env` file in the working directory says; the environment comes before it. */
function dotEnv(directory: string): Readonly<Record<string, string | undefined>> {
  const text = textOf(join(directory, ".env"));
  return text === undefined ? {} : parseEnv(text);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
