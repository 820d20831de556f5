import type { Span } from "../api/service/traces.ts";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import { brief, type Log } from "./log.ts";

export interface TraceTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly service: string;
}

export interface TraceExportParts {
  readonly target: TraceTarget;
  readonly host: Host;
  readonly log: Pick<Log, "warn" | "info">;
  readonly version: string;
  /** What is to be told of an execution that is over. */
  readonly spans: (execution: string) => Promise<readonly Span[]>;
}

/** What ends soon after one another goes together. */
const GATHER_MS = 1_000;
const ANSWER_MS = 10_000;
/** When the process stops, nobody waits longer for a collector than this. */
const LAST_ANSWER_MS = 2_000;
const TRIES = 3;
/** In one request. */
const MAX_SPANS = 2_000;
/** Executions that wait to be told of. Traces are no journal: what is too much is left out. */
const MAX_WAITING = 10_000;

/** Where the settings want traces sent; undefined if nowhere. */
export function traceTarget(settings: Settings): TraceTarget | undefined {
  const { otlpEndpoint: base, otlpTracesEndpoint, otlpHeaders, otelServiceName: service } = settings;
  if (settings.otelDisabled || !settings.otelTracesExporter.some((one) => one.toLowerCase() === "otlp"))
    return undefined;
  const url = otlpTracesEndpoint ?? (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/v1/traces`);
  if (url === undefined) return undefined;
  const headers = otlpHeaders.map((word) => {
    const at = word.indexOf("=");
    return [word.slice(0, Math.max(0, at)).trim(), decoded(word.slice(at + 1).trim())] as const;
  });
  const given = Object.fromEntries(headers.filter(([name]) => name !== ""));
  return { ...withoutLogin(url, given), service };
}

/** A login that stands in the address is sent as a header: no request takes it there. */
function withoutLogin(url: string, headers: TraceTarget["headers"]): Omit<TraceTarget, "service"> {
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.username === "" && parsed.password === "")) return { url, headers };
  const login = `${decoded(parsed.username)}:${decoded(parsed.password)}`;
  parsed.username = parsed.password = "";
  const authorization = `Basic ${Buffer.from(login).toString("base64")}`;
  return { url: parsed.href, headers: { authorization, ...headers } };
}

/** The convention wants values as in a URL. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * Tells a collector of executions that are over, by OTLP over HTTP. It reads what was committed and holds up nobody: a
 * collector that is away loses what it is not told in time, and stands in the log once.
 */
export class TraceExport {
  readonly #parts: TraceExportParts;
  readonly #waiting = new Set<string>();
  readonly #closing = new AbortController();
  #sending: Promise<void> | undefined;
  /** Ends the request that is under way. */
  #request = new AbortController();
  #hasTrouble = false;

  constructor(parts: TraceExportParts) {
    this.#parts = parts;
  }

  /** An execution is over. */
  add(execution: string): void {
    if (this.#waiting.size >= MAX_WAITING) return;
    this.#waiting.add(execution);
    this.#begin();
  }

  /** Sends what is left, if somebody takes it soon. */
  async close(): Promise<void> {
    this.#closing.abort();
    const isSent = new AbortController();
    await Promise.race([this.#sending, this.#parts.host.sleep(LAST_ANSWER_MS, isSent.signal)]);
    isSent.abort();
    this.#waiting.clear();
    this.#request.abort();
  }

  #begin(): void {
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    await this.#parts.host.sleep(GATHER_MS, this.#closing.signal);
    while (this.#waiting.size > 0) await this.#send();
    this.#sending = undefined;
  }

  async #send(): Promise<void> {
    const spans: Span[] = [];
    for (const execution of this.#waiting) {
      this.#waiting.delete(execution);
      spans.push(...(await this.#read(execution)));
      if (spans.length >= MAX_SPANS) break;
    }
    if (spans.length > 0) await this.#post(spans);
  }

  /** It may have been removed meanwhile, or the store be away: then there is nothing to tell. */
  async #read(execution: string): Promise<readonly Span[]> {
    try {
      return await this.#parts.spans(execution);
    } catch {
      return [];
    }
  }

  async #post(spans: readonly Span[]): Promise<void> {
    const { target, host, version } = this.#parts;
    const body = JSON.stringify(exported(spans, target.service, version));
    const headers = { "content-type": "application/json", "user-agent": "millrace", ...target.headers };
    let refusal = await this.#sent(target.url, headers, body);
    for (let tries = 1; refusal?.mayPass === true && tries < TRIES; tries++) {
      if (this.#closing.signal.aborted) break;
      await host.sleep(1_000 * 2 ** (tries - 1), this.#closing.signal);
      refusal = await this.#sent(target.url, headers, body);
    }
    this.#settle(refusal?.trouble, spans.length);
  }

  async #sent(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<{ readonly trouble: string; readonly mayPass: boolean } | undefined> {
    const request = new AbortController();
    this.#request = request;
    const timer = setTimeout(() => request.abort(), ANSWER_MS);
    try {
      // Whoever it leads to was not named by anybody who trusts it with the headers.
      const answer = await fetch(url, { method: "POST", headers, body, redirect: "error", signal: request.signal });
      const text = await answer.text();
      if (answer.ok) return undefined;
      const mayPass = answer.status === 429 || answer.status >= 500;
      return { trouble: `${answer.status} ${brief(text)}`.trim(), mayPass };
    } catch (error) {
      if (request.signal.aborted) return { trouble: "no answer in time", mayPass: true };
      // Without a cause it was never sent, and its message may have a header in it.
      const { cause } = error as Error & { readonly cause?: { readonly message?: string } };
      if (cause === undefined) return { trouble: "the address or a header is not valid", mayPass: false };
      return { trouble: brief(cause.message ?? "it cannot be reached"), mayPass: true };
    } finally {
      clearTimeout(timer);
    }
  }

  #settle(trouble: string | undefined, spans: number): void {
    const { log, target } = this.#parts;
    const hadTrouble = this.#hasTrouble;
    this.#hasTrouble = trouble !== undefined;
    if (trouble !== undefined && !hadTrouble) {
      log.warn({ url: shownUrl(target.url), trouble, spans }, "traces cannot be sent, and are left out until they can");
    }
    if (trouble === undefined && hadTrouble) log.info("traces are sent again");
  }
}

/** Some put a key into it. */
function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? "(no URL)" : `${parsed.origin}${parsed.pathname}`;
}

/** As OTLP has it in JSON: numbers of 64 bits are text. */
function exported(spans: readonly Span[], service: string, version: string): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ "service.name": service }) },
        scopeSpans: [{ scope: { name: "millrace", version }, spans: spans.map(exportedSpan) }],
      },
    ],
  };
}

const INTERNAL = 1;
const ERROR = 2;

function exportedSpan({ startMs, endMs, attributes, error, parentSpanId, ...ids }: Span): object {
  return {
    ...ids,
    ...(parentSpanId !== undefined && { parentSpanId }),
    kind: INTERNAL,
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: attributesOf(attributes),
    ...(error !== undefined && { status: { code: ERROR, message: error } }),
  };
}

function attributesOf(attributes: Span["attributes"]): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}
