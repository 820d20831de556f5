import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

/** A server that commands can be sent to by name. */
export interface Context {
  readonly url: string;
  readonly apiKey?: string;
}

export interface Contexts {
  /** The one that commands use if they name none. */
  readonly current: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** The server on this machine: there without being written down, and the one to begin with. */
export const LOCAL = "local";

type Env = Readonly<Record<string, string | undefined>>;

export function contextsFile(env: Env): string {
  const home = env["XDG_CONFIG_HOME"] ?? join(env["HOME"] ?? homedir(), ".config");
  return env["MILLRACE_CONTEXTS"] ?? join(home, "millrace", "contexts.json");
}

export function readContexts(env: Env): Contexts {
  let text: string;
  try {
    text = readFileSync(contextsFile(env), "utf8");
  } catch {
    return { current: LOCAL, contexts: {} };
  }
  try {
    const { current, contexts } = JSON.parse(text) as Contexts;
    if (typeof current === "string" && typeof contexts === "object" && (contexts as unknown) !== null)
      return { current, contexts };
  } catch {
    // Told below.
  }
  throw new Failure(EXIT.usage, `${contextsFile(env)} is not what \`millrace context\` has written.`, {
    hint: "mend it or remove it",
  });
}

/** It may hold keys, so nobody else may read it. */
export function writeContexts(env: Env, contexts: Contexts): void {
  const file = contextsFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export function contextNamed({ contexts }: Contexts, name: string): Context {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found !== undefined) return found;
  const names = [LOCAL, ...Object.keys(contexts)].join(", ");
  throw new Failure(EXIT.notFound, `there is no context ${JSON.stringify(name)}.`, { hint: `one of: ${names}` });
}

/**
 * The environment with the server that a context means. One that was named comes before the variables; the current one
 * only where neither a flag nor a variable names a server, and never lends its key to another.
 */
export function withContext(env: Env, named: string | undefined, hasUrl: boolean): Env {
  if (named === LOCAL) return { ...env, MILLRACE_URL: undefined };
  if (named !== undefined) return { ...env, ...variables(contextNamed(readContexts(env), named)) };
  if (hasUrl || env["MILLRACE_URL"] !== undefined) return env;
  const all = readContexts(env);
  return all.current === LOCAL ? env : { ...env, ...variables(contextNamed(all, all.current)) };
}

function variables({ url, apiKey }: Context): Env {
  return { MILLRACE_URL: url, MILLRACE_API_KEY: apiKey };
}
