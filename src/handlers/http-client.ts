import { pipeline, type Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Agent } from "undici";
import { errorMessage, quote } from "../errors/registry.ts";
import { HandlerError } from "../worker/handler.ts";
import { EgressBlocked, type Lookup, openAgent } from "./egress-agent.ts";
import type { Egress } from "./egress.ts";

export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** How much of a body is read, by status: more is cut off. */
  readonly maxBytes: (status: number) => number;
  /** Statuses that are the answer, though they would lead elsewhere. */
  readonly wanted?: readonly number[];
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case; repeated ones joined, except for cookies. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Decoded. */
  readonly body: Buffer;
  /** There was more than wanted. */
  readonly isCut: boolean;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** What may be told to another host than the one it was meant for. Any other header may hold a credential. */
const HARMLESS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "idempotency-key",
  "user-agent",
]);

/**
 * Plain HTTP calls, each hop of them under the egress rules. Whatever goes wrong on the way is a `HandlerError`: what
 * another try may mend is retryable, what is written wrong is not.
 */
export class HttpClient {
  readonly #egress: Egress;
  readonly #lookup: Lookup | undefined;
  #agent: Promise<Agent> | undefined;

  constructor(egress: Egress, options: { readonly lookup?: Lookup } = {}) {
    this.#egress = egress;
    this.#lookup = options.lookup;
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    let hop: Hop = { ...request, url: parseUrl(request.url) };
    hop = { ...hop, headers: withUserInfo(hop) };
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#exchange(hop);
      const next = request.wanted?.includes(answer.status) === true ? undefined : nextHop(hop, answer);
      if (next === undefined) return answer;
      if (redirects === MAX_REDIRECTS) {
        const message = `${describe(hop)} was redirected more than ${MAX_REDIRECTS} times`;
        throw new HandlerError(`HTTP_${answer.status}`, message);
      }
      hop = next;
    }
  }

  async close(): Promise<void> {
    await (await this.#agent)?.close();
  }

  async #exchange(hop: Hop): Promise<HttpAnswer> {
    const { url, method, headers, body, signal, maxBytes } = hop;
    try {
      signal.throwIfAborted();
      this.#agent ??= openAgent(this.#egress, this.#lookup);
      const dispatcher = await this.#agent;
      const { request } = await import("undici");
      const answer = await request(url, { dispatcher, method, headers, body: body ?? null, signal });
      const hasBody = method !== "HEAD" && answer.statusCode !== 204 && answer.statusCode !== 304;
      const decoded = hasBody ? decode(answer.body, answer.headers["content-encoding"]) : answer.body;
      return {
        status: answer.statusCode,
        headers: plainHeaders(answer.headers),
        ...(await read(decoded, maxBytes(answer.statusCode))),
      };
    } catch (error) {
      // Not our failure: whoever aborted knows why.
      if (signal.aborted) throw error;
      throw failure(hop, error);
    }
  }
}

type Hop = Omit<HttpRequest, "url"> & { readonly url: URL };

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null) throw new HandlerError("CONFIG_INVALID", `${quote(text.split("?")[0]!)} is not a URL`);
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  const message = `Only http and https can be called, not ${quote(url.protocol.slice(0, -1))}.`;
  throw new HandlerError("EGRESS_BLOCKED", message);
}

/** `https://user:password@host` is an old way to write a header. */
function withUserInfo({ url, headers }: Hop): Readonly<Record<string, string>> {
  if (url.username === "" && url.password === "") return headers;
  const authorization = `Basic ${Buffer.from(unescape(`${url.username}:${url.password}`)).toString("base64")}`;
  url.username = "";
  url.password = "";
  return { authorization, ...headers };
}

/** Percent signs that escape nothing stand for themselves. */
function unescape(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    const bytes = Buffer.from(escaped.replaceAll("%", ""), "hex");
    return bytes.toString("utf8");
  });
}

/** Where an answer leads, as browsers understand it; undefined if it leads nowhere. */
function nextHop(hop: Hop, { status, headers }: HttpAnswer): Hop | undefined {
  const { location } = headers;
  if (!REDIRECTS.has(status) || typeof location !== "string") return undefined;
  const url = parseUrl(location, hop.url);
  url.username = "";
  url.password = "";
  const isAway = url.origin !== hop.url.origin;
  const kept = Object.entries(hop.headers).filter(([name]) => !isAway || HARMLESS.has(name));
  const becomesGet = status === 303 ? hop.method !== "HEAD" : status < 303 && hop.method === "POST";
  if (!becomesGet) return { ...hop, url, headers: Object.fromEntries(kept) };
  const { body: _, ...rest } = hop;
  const bare = kept.filter(([name]) => name !== "content-type");
  return { ...rest, url, method: "GET", headers: Object.fromEntries(bare) };
}

function plainHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string | string[]>> {
  const plain: [string, string | string[]][] = [];
  for (const [name, value = ""] of Object.entries(headers)) {
    if (name === "set-cookie") plain.push([name, Array.isArray(value) ? value : [value]]);
    else plain.push([name, Array.isArray(value) ? value.join(", ") : value]);
  }
  return Object.fromEntries(plain);
}

/** Lenient about an end that is missing: where it matters, the length was announced and is checked. */
const LENIENT = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(LENIENT),
  "x-gzip": () => createGunzip(LENIENT),
  deflate: () => createInflate(LENIENT),
  br: () =>
    createBrotliDecompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      finishFlush: constants.BROTLI_OPERATION_FLUSH,
    }),
};
const MAX_ENCODINGS = 3;

function decode(body: Readable, encoding: string | string[] | undefined): Readable {
  const names = [encoding ?? []].flat().join(",").toLowerCase().split(",");
  const decoders = names.map((name) => DECODERS[name.trim()]).filter((decoder) => decoder !== undefined);
  if (decoders.length === 0 || decoders.length > MAX_ENCODINGS) return body;
  const streams = decoders.reverse().map((decoder) => decoder());
  return pipeline([body, ...streams], () => {}) as unknown as Readable;
}

/** Counts what comes out of the decoders: a few bytes may unpack to any number. */
async function read(body: Readable, maxBytes: number): Promise<{ body: Buffer; isCut: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the stream, and with it the connection.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxBytes) return { body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: true };
  }
  return { body: Buffer.concat(chunks), isCut: false };
}

function failure(hop: Hop, error: unknown): HandlerError {
  if (error instanceof HandlerError) return error;
  const cause = { cause: error };
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof EgressBlocked) {
    const reason =
      "It is, or leads to, an address that is not public. Its operator can list it in MILLRACE_EGRESS_ALLOW.";
    const message = `${errorMessage("EGRESS_BLOCKED", { host: error.host })} ${reason}`;
    return new HandlerError("EGRESS_BLOCKED", message, { retryable: false, ...cause });
  }
  if (code === "UND_ERR_INVALID_ARG") {
    const message = `${describe(hop)} cannot be sent: ${(error as Error).message}`;
    return new HandlerError("CONFIG_INVALID", message, { retryable: false, ...cause });
  }
  if (code === "UND_ERR_HEADERS_OVERFLOW") {
    const message = `${describe(hop)}: the headers of the answer are too large`;
    return new HandlerError("RESPONSE_TOO_LARGE", message, { retryable: false, ...cause });
  }
  const why = typeof code === "string" ? code : error instanceof Error ? error.message : "unknown";
  return new HandlerError("CONNECTION_FAILED", `${describe(hop)} failed: ${why}`, { retryable: true, ...cause });
}

/** Without the query, where credentials often are. */
export function describe({ method, url }: Pick<Hop, "method" | "url">): string {
  return `${method} ${url.origin}${url.pathname}`;
}
