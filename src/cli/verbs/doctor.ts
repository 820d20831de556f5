import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { connect as connectSocket, type NetConnectOpts } from "node:net";
import { dirname, resolve } from "node:path";
import type { KafkaError } from "../../bus/kafka.ts";
import { openKafka } from "../../bus/kafka-client.ts";
import { counted } from "../../errors/counted.ts";
import { isNearlyFull } from "../../host/disk-room.ts";
import { busAddress, shownBus } from "../../settings/bus-address.ts";
import type { ReadSettings } from "../../settings/read-settings.ts";
import { type SettingName, SETTINGS } from "../../settings/declarations.ts";
import type { Setting } from "../../settings/setting.ts";
import { archiveAddress, shownAddress, storeAddress, type StoreAddress } from "../../settings/store-address.ts";
import { inspectPostgresStore, inspectRedisStore, postgresEndpoint } from "../../process/inspect-store.ts";
import type { Call, Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../print.ts";
import { Server } from "../server.ts";
import { version } from "../version.ts";

/** What was looked at. `note` is neither good nor bad. */
interface Finding {
  readonly what: string;
  readonly state: "ok" | "note" | "bad";
  readonly told: string;
  readonly fix?: string;
}

interface ShownQueue {
  readonly name: string;
  readonly queued: number;
  readonly workers: number;
  /** An older server does not say. */
  readonly stuck_workers?: number;
}

const CLOCK_MS = 5_000;
const CONNECT_MS = 2_000;

/** Looks at everything that commonly stands in the way, changes nothing, and says what to do. */
export const verb: Verb = async (call) => {
  const findings: Finding[] = [nodeFinding()];
  const read = await settingsOf(call, findings);
  if (read !== undefined) {
    const address = storeAddress(read.settings);
    if ("fault" in address) findings.push({ what: "store", state: "bad", told: address.fault });
    else findings.push(...(await storeFindings(call, address, read)));
    findings.push(...(await archiveFindings(read)));
    findings.push(...(await busFindings(read)));
    findings.push(...(await serverFindings(read)), llmFinding(read));
  }
  if (call.json) printJson(call, findings);
  else for (const finding of findings) call.terminal.out(shown(finding));
  return findings.some(({ state }) => state === "bad") ? EXIT.failed : EXIT.done;
};

function shown({ what, state, told, fix }: Finding): string {
  const symbol = { ok: "✓", note: "–", bad: "✗" }[state];
  return `${symbol} ${what.padEnd(10)} ${told}\n${fix === undefined ? "" : `             fix: ${fix}\n`}`;
}

function nodeFinding(): Finding {
  return {
    what: "millrace",
    state: "ok",
    told: `${version()} on Node ${process.versions.node}, ${process.platform} ${process.arch}`,
  };
}

async function settingsOf(call: Call, findings: Finding[]): Promise<ReadSettings | undefined> {
  try {
    const read = await call.settings();
    const given = (Object.keys(SETTINGS) as SettingName[])
      .filter((name) => read.origins[name] !== "default")
      .map((name) => `${name} from ${read.origins[name]}${(SETTINGS[name] as Setting).secret ? " (hidden)" : ""}`);
    findings.push({ what: "settings", state: "ok", told: given.length === 0 ? "all defaults" : given.join(", ") });
    return read;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    findings.push({
      what: "settings",
      state: "bad",
      told: [error.message, ...error.lines].join(" "),
      fix: "docs/settings.md",
    });
    return undefined;
  }
}

async function storeFindings(call: Call, address: StoreAddress, read: ReadSettings): Promise<readonly Finding[]> {
  const found = await storeFinding(call, address);
  if (found.state === "bad") return [found];
  const more =
    address.kind === "postgres"
      ? await inspectPostgresStore({ ...address, kind: "postgres" }, read.settings)
      : address.kind === "redis"
        ? await inspectRedisStore({ ...address, kind: "redis" }, read.settings)
        : [];
  return [found, ...more.map((one): Finding => ({ what: address.kind, ...one }))];
}

async function storeFinding(call: Call, address: StoreAddress): Promise<Finding> {
  const what = "store";
  const told = shownAddress(address);
  switch (address.kind) {
    case "memory":
      return { what, state: "note", told: "memory: everything is lost when the process ends" };
    case "sqlite":
      return fileFinding(resolve(call.terminal.directory, address.file), told);
    case "postgres":
    case "redis": {
      const fault = await reach(await endpointOf(address.url, address.kind));
      if (fault === undefined) return { what, state: "ok", told: `${told} answers` };
      return {
        what,
        state: "bad",
        told: `${told}: ${fault}`,
        fix: `start it, or use the embedded store: --store ${SETTINGS.store.default}`,
      };
    }
  }
}

async function archiveFindings({ settings }: ReadSettings): Promise<readonly Finding[]> {
  const what = "archive";
  const url = archiveAddress(settings);
  if (url === undefined) return [];
  if (typeof url !== "string") return [{ what, state: "bad", told: url.fault }];
  const told = shownAddress({ kind: "postgres", url });
  const fault = await reach(await endpointOf(url, "postgres"));
  if (fault === undefined) return [{ what, state: "ok", told: `${told} answers` }];
  return [{ what, state: "bad", told: `${told}: ${fault}`, fix: "start it: the store fills until it is back" }];
}

async function busFindings({ settings }: ReadSettings): Promise<readonly Finding[]> {
  const what = "bus";
  const address = busAddress(settings);
  if (address === undefined) return [];
  if ("fault" in address) return [{ what, state: "bad", told: address.fault }];
  const told = shownBus(address);
  try {
    const kafka = await openKafka({ address, client: "millrace-doctor", partitions: settings.busPartitions });
    await kafka.close();
    return [{ what, state: "ok", told: `${told} answers` }];
  } catch (error) {
    const { message, fix = "start it, or name brokers that answer: MILLRACE_BUS=kafka://HOST:PORT,…" } =
      error as KafkaError;
    return [{ what, state: "bad", told: `${told}: ${message}`, fix }];
  }
}

function fileFinding(file: string, told: string): Finding {
  const what = "store";
  let folder = dirname(file);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    accessSync(existsSync(file) ? file : folder, constants.R_OK | constants.W_OK);
  } catch {
    return {
      what,
      state: "bad",
      told: `${told} cannot be written`,
      fix: `give yourself the right to write to ${folder}, or name another place: --store sqlite:PATH`,
    };
  }
  if (isNearlyFull(folder)) {
    return { what, state: "bad", told: `${told}: its disk is full, and nothing new begins`, fix: "make room on it" };
  }
  if (!existsSync(file)) return { what, state: "ok", told: `${told} is made by the first \`millrace dev\`` };
  const size = `${(statSync(file).size / 1_048_576).toFixed(1)} MiB`;
  const holder = holderOf(file);
  return { what, state: "ok", told: `${told}, ${size}${holder === undefined ? "" : `, in use by process ${holder}`}` };
}

/** The process that has the file, if it lives. */
function holderOf(file: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(`${file}.owner`, "utf8")) as { readonly pid: number };
    process.kill(pid, 0);
    return pid;
  } catch {
    return undefined;
  }
}

async function endpointOf(url: string, kind: "postgres" | "redis"): Promise<NetConnectOpts | undefined> {
  if (kind === "postgres") return postgresEndpoint(url);
  const path = /^unix:\/\/[^/]*([^?#]+)/.exec(url)?.[1];
  if (path !== undefined) return { path: decodeURIComponent(path) };
  const parsed = URL.parse(url);
  const host = parsed?.hostname.replace(/^\[(.+)\]$/, "$1");
  return host === undefined ? undefined : { host, port: Number(parsed!.port) || 6379 };
}

function reach(endpoint: NetConnectOpts | undefined): Promise<string | undefined> {
  if (endpoint === undefined) return Promise.resolve("it is not an address");
  return new Promise((done) => {
    const socket = connectSocket({ ...endpoint, timeout: CONNECT_MS });
    const end = (fault: string | undefined): void => {
      socket.destroy();
      done(fault);
    };
    socket.once("connect", () => end(undefined));
    socket.once("timeout", () => end("no answer"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

async function serverFindings({ settings }: ReadSettings): Promise<readonly Finding[]> {
  const what = "server";
  let response: Response;
  try {
    response = await fetch(`${settings.url}/health/ready`, { signal: AbortSignal.timeout(CONNECT_MS) });
  } catch {
    return [{ what, state: "note", told: `none at ${settings.url}`, fix: "only if you want one: millrace dev" }];
  }
  if (!response.ok) {
    const { detail = String(response.status) } = (await response.json().catch(() => ({}))) as {
      readonly detail?: string;
    };
    return [{ what, state: "bad", told: `${settings.url} is not ready: ${detail}` }];
  }
  return [
    { what, state: "ok", told: `${settings.url} is ready` },
    ...(await partFindings(response)),
    clockFinding(response),
    ...(await queueFindings(settings)),
  ];
}

/** Of these there is more to say, and it is asked for by itself. */
const TOLD_APART = ["queues", "workers"];

/** What is wrong at a server that serves all the same, such as a bus or an archive that it cannot reach. */
async function partFindings(response: Response): Promise<readonly Finding[]> {
  const { parts = {} } = (await response.json().catch(() => ({}))) as { readonly parts?: Record<string, string> };
  return Object.entries(parts)
    .filter(([part, state]) => state !== "ok" && !TOLD_APART.includes(part))
    .map(([part, state]): Finding => ({ what: "server", state: "bad", told: `of its ${part} it says: ${state}` }));
}

function clockFinding(response: Response): Finding {
  const offMs = Math.abs(Date.now() - Date.parse(response.headers.get("date") ?? ""));
  if (!(offMs > CLOCK_MS)) return { what: "clock", state: "ok", told: "this machine and the server agree" };
  const told = `this machine and the server differ by ${Math.round(offMs / 1_000)} s`;
  return { what: "clock", state: "bad", told, fix: "set both by NTP" };
}

async function queueFindings(settings: ReadSettings["settings"]): Promise<readonly Finding[]> {
  try {
    const server = new Server(settings.url, settings.apiKey);
    const { items } = await server.list<ShownQueue>("/v1/queues", {}, Number.POSITIVE_INFINITY);
    const stuck = stuckFindings(items);
    const unserved = items.filter(({ queued, workers }) => queued > 0 && workers === 0);
    if (unserved.length === 0) {
      return [{ what: "handlers", state: "ok", told: "every queue with tasks has a worker" }, ...stuck];
    }
    const told = unserved
      .map(({ name, queued }) => `${counted(queued, "task waits", "tasks wait")} for "${name}", which nobody serves`)
      .join("; ");
    return [
      {
        what: "handlers",
        state: "bad",
        told,
        fix: "start the server with --handlers FILE, or a worker that brings them",
      },
      ...stuck,
    ];
  } catch (error) {
    return [{ what: "handlers", state: "note", told: (error as Error).message }];
  }
}

/** Workers that are alive and take nothing: handlers that were asked to stop keep all their slots. */
function stuckFindings(queues: readonly ShownQueue[]): readonly Finding[] {
  const stuck = queues.filter(({ stuck_workers: count = 0 }) => count > 0);
  if (stuck.length === 0) return [];
  const waiting = stuck.filter(({ queued, workers, stuck_workers: count }) => queued > 0 && count === workers);
  const fix = "see which: millrace workers   and restart the worker; a handler has to mind ctx.signal";
  const told = (waiting.length > 0 ? waiting : stuck)
    .map(({ name, queued, workers, stuck_workers: count }) =>
      waiting.length > 0
        ? `${counted(queued, "task waits", "tasks wait")} for "${name}", whose workers are full with handlers that do not stop`
        : `${count} of ${workers} workers of "${name}" are full with handlers that do not stop`,
    )
    .join("; ");
  return [{ what: "workers", state: waiting.length > 0 ? "bad" : "note", told, fix }];
}

function llmFinding({ settings }: ReadSettings): Finding {
  const what = "llm";
  if (settings.mock) return { what, state: "note", told: "every call is mocked (--mock)" };
  if (settings.openaiApiKey !== undefined || settings.openaiBaseUrl !== undefined) {
    return { what, state: "ok", told: settings.openaiBaseUrl ?? "OpenAI, with a key" };
  }
  return {
    what,
    state: "note",
    told: `no provider: llm nodes ${settings.environment === "prod" ? "fail" : "answer by a mock"}`,
    fix: "set OPENAI_API_KEY, or OPENAI_BASE_URL",
  };
}
