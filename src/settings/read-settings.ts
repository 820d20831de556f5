import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { busAddress } from "./bus-address.ts";
import { type SettingName, type Settings, SETTINGS, WITHOUT_EFFECT } from "./declarations.ts";
import { isUnfit, type Setting } from "./setting.ts";

export interface SettingSources {
  /** By the name of the setting, as the command line gave it. */
  readonly flags?: Readonly<Partial<Record<SettingName, unknown>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly path: string; readonly values: Readonly<Record<string, unknown>> } | undefined;
  /** What a command starts from instead of the declared default. */
  readonly defaults?: Partial<Settings>;
  /** For `<NAME>_FILE`; undefined if there is no such file. */
  readonly readFile?: (path: string) => string | undefined;
}

export interface ReadSettings {
  readonly settings: Settings;
  /** What was read, for what is no setting: the secrets of a worker. */
  readonly env: SettingSources["env"];
  /** Where each value comes from, for people: `--port`, `PORT`, the path of a file, or `default`. */
  readonly origins: Readonly<Record<SettingName, string>>;
  /** Every one of them, in sentences. With any of these, nothing may be started. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

type Given = { readonly value: unknown; readonly origin: string } | { readonly fault: string };

const NAMES = Object.keys(SETTINGS) as SettingName[];

/** Flags come before the environment, that before the config file, and that before the defaults. */
export function readSettings(sources: SettingSources): ReadSettings {
  const settings: Partial<Record<SettingName, unknown>> = {};
  const origins: Partial<Record<SettingName, string>> = {};
  const faults: string[] = [];
  const unheard: string[] = [];
  for (const name of NAMES) {
    const setting: Setting = SETTINGS[name];
    const given = givenFor(name, setting, sources);
    settings[name] = sources.defaults?.[name] ?? setting.default;
    origins[name] = "default";
    if (given === undefined) continue;
    if ("fault" in given) {
      faults.push(given.fault);
      continue;
    }
    const value = setting.read(given.value);
    if (isUnfit(value)) {
      const shown = setting.secret ? "" : `, not ${quote(value.word ?? textOf(given.value))}`;
      if (setting.isShared) unheard.push(`${given.origin} has no effect: it ${value.unfit}${shown}.`);
      else faults.push(`${given.origin} ${value.unfit}${shown}.`);
    } else {
      settings[name] = value;
      origins[name] = given.origin;
    }
  }
  const read = settings as Settings;
  faults.push(...unknownKeys(sources), ...contradictions(read));
  return {
    settings: read,
    env: sources.env,
    origins: origins as Record<SettingName, string>,
    faults,
    warnings: [...unheard, ...withoutEffect(sources.env), ...misspelt(sources.env)],
  };
}

function givenFor(
  name: SettingName,
  setting: Setting,
  { flags, env, file, readFile }: SettingSources,
): Given | undefined {
  const flag = flags?.[name];
  if (flag !== undefined) return { value: flag, origin: `--${setting.flag}` };
  if (setting.isByHandler) return givenByHandler(name, setting, env, file);
  for (const variable of setting.env) {
    const value = env[variable];
    // An empty variable is how shells and compose files say that there is none.
    if (value !== undefined && value !== "") return { value, origin: variable };
    const path = setting.secret ? env[`${variable}_FILE`] : undefined;
    if (path === undefined || path === "") continue;
    const text = readFile?.(path);
    if (text === undefined) return { fault: `${variable}_FILE names ${quote(path)}, which cannot be read.` };
    return { value: text.trim(), origin: `${variable}_FILE` };
  }
  const value = file?.values[name];
  return value === undefined ? undefined : { value, origin: `"${name}" in ${file!.path}` };
}

/** All variables with the prefix that no other setting has. */
function givenByHandler(
  name: SettingName,
  { env: [prefix] }: Setting,
  env: SettingSources["env"],
  file: SettingSources["file"],
): Given | undefined {
  const taken = new Set<string>([...NAMES.flatMap((other) => SETTINGS[other].env), ...Object.keys(WITHOUT_EFFECT)]);
  const found = Object.keys(env).filter((one) => one.startsWith(prefix!) && !taken.has(one) && env[one] !== "");
  if (found.length > 0) {
    const value = Object.fromEntries(found.map((one) => [one.slice(prefix!.length), env[one]]));
    return { value, origin: found.join(" and ") };
  }
  const value = file?.values[name];
  return value === undefined ? undefined : { value, origin: `"${name}" in ${file!.path}` };
}

function unknownKeys({ file }: SettingSources): string[] {
  const faults: string[] = [];
  for (const key of Object.keys(file?.values ?? {})) {
    if (Object.hasOwn(SETTINGS, key)) continue;
    faults.push(`${file!.path} has no setting ${quote(key)}.${suggestion(key, NAMES)}`);
  }
  return faults;
}

/** What is wrong only together. */
function contradictions(settings: Settings): string[] {
  const faults: string[] = [];
  if (settings.retryMaxDelay < settings.retryInitialDelay) {
    faults.push("RETRY_MAX_DELAY must not be less than RETRY_INITIAL_DELAY.");
  }
  if (settings.workerHeartbeatTimeout < 2 * settings.workerHeartbeatInterval) {
    faults.push(
      "WORKER_HEARTBEAT_TIMEOUT must be at least twice WORKER_HEARTBEAT_INTERVAL: one lost heartbeat is nothing.",
    );
  }
  if (settings.environment === "prod" && settings.mock) {
    faults.push("MILLRACE_MOCK=true is not possible with MILLRACE_ENV=prod: it would fake results.");
  }
  if (settings.environment === "prod" && settings.allowMissingHandlers) {
    faults.push(
      "MILLRACE_ALLOW_MISSING_HANDLERS=true is not possible with MILLRACE_ENV=prod: a misspelt handler would wait for ever.",
    );
  }
  if (settings.singleQueue !== undefined && Object.keys(settings.workerConcurrencyOf).length > 0) {
    faults.push(
      "WORKER_CONCURRENCY_<HANDLER> is not possible with MILLRACE_SINGLE_QUEUE: from one queue a worker cannot choose.",
    );
  }
  const bus = busAddress(settings);
  if (bus !== undefined && "fault" in bus) faults.push(bus.fault);
  if (bus === undefined && settings.busQueues.length > 0) {
    faults.push("MILLRACE_BUS_QUEUES needs MILLRACE_BUS: without it these tasks would wait for nobody.");
  }
  return faults;
}

function withoutEffect(env: SettingSources["env"]): string[] {
  const given = Object.keys(WITHOUT_EFFECT).filter((name) => (env[name] ?? "") !== "");
  if (given.length === 0) return [];
  const reasons = Map.groupBy(given, (name) => WITHOUT_EFFECT[name]!);
  const parts = [...reasons].map(([reason, names]) => `${names.join(" and ")}: ${reason}`);
  return [`These settings are accepted and have no effect. ${parts.join("; ")}.`];
}

/** A variable with our prefix that nobody reads is a typing error that would otherwise go unnoticed. */
function misspelt(env: SettingSources["env"]): string[] {
  const known = new Set<string>(["MILLRACE_CONFIG", "MILLRACE_CONTEXTS"]);
  for (const name of NAMES) {
    const { env: variables, secret }: Setting = SETTINGS[name];
    for (const variable of variables) known.add(variable).add(secret ? `${variable}_FILE` : variable);
  }
  return Object.keys(env)
    .filter((name) => /^MILLRACE_(?!SECRET_|TEST_)/.test(name) && !known.has(name))
    .map((name) => `${name} is no setting.${suggestion(name, known)}`);
}

function suggestion(name: string, candidates: Iterable<string>): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? "" : ` Did you mean ${nearest}?`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? typeof value);
}
