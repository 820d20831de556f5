import { pricesOf } from "../definition/prices.ts";
import { KnownHandlers, NO_HANDLERS } from "../definition/handlers.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import { egressEntryOf } from "../settings/egress-entry.ts";
import { type Handler, isHandlerError } from "../worker/handler.ts";
import type { Lookup } from "./egress-agent.ts";
import { documentHandlers } from "./document-handlers.ts";
import { Egress } from "./egress.ts";
import { HttpClient } from "./http-client.ts";
import { httpHandler } from "./http.ts";
import { LlmClient } from "./llm-client.ts";
import { llmHandler } from "./llm.ts";
import { cannedAnswer, mockHttp, mockLlm } from "./mocks.ts";
import { preparedHandler } from "./prepared-handler.ts";

export interface BuiltinOptions {
  readonly host: Host;
  /**
   * The variables of the process: MILLRACE_EGRESS_ALLOW, MILLRACE_MOCK, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL,
   * MILLRACE_ENV, MILLRACE_FILES_FOLDER, MILLRACE_OUTPUT_FOLDER, MILLRACE_LLM_FIXTURES.
   */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether workflows may call this machine: `dev`, `run` and embedded engines allow it, `serve` does not. */
  readonly loopback?: boolean;
  /** `--mock`: no call of `http`, `llm`, `llm.extract` or `notify` leaves the process. As MILLRACE_MOCK=true. */
  readonly mock?: boolean;
  readonly lookup?: Lookup;
}

export interface Builtins {
  /** By name, for a worker. */
  readonly handlers: ReadonlyMap<string, Handler>;
  close(): Promise<void>;
}

/**
 * The built-in handlers that run on workers: `http`, `llm`, `transform`, and those of documents. The rest of the built-in
 * nodes is the engine's.
 */
export function builtinHandlers({ host, env, loopback = false, mock = false, lookup }: BuiltinOptions): Builtins {
  const baseUrl = env["OPENAI_BASE_URL"] || undefined;
  const allow = [...listOf(env["MILLRACE_EGRESS_ALLOW"]), ...hostOf(baseUrl)];
  const client = new HttpClient(new Egress({ allow, loopback }), lookup === undefined ? {} : { lookup });
  const settings = {
    baseUrl,
    apiKey: env["OPENAI_API_KEY"] || undefined,
    model: env["OPENAI_MODEL"] || undefined,
    prices: pricesOf(listOf(env["MILLRACE_PRICES"])),
  };
  const llmFixtures = env["MILLRACE_LLM_FIXTURES"] || undefined;
  const isProd = env["MILLRACE_ENV"] === "prod";
  const hasLlm = settings.apiKey !== undefined || baseUrl !== undefined;
  const documents = documentHandlers({
    host,
    client,
    filesFolder: env["MILLRACE_FILES_FOLDER"] || undefined,
    outputFolder: env["MILLRACE_OUTPUT_FOLDER"] || undefined,
    llmFixtures,
    // Fixtures were named by whoever runs this, and say what they are.
    ...((hasLlm || (isProd && llmFixtures === undefined)) && { llm: new LlmClient(client, host, settings) }),
  });
  const mocksAll = mock || env["MILLRACE_MOCK"] === "true";
  const known = new KnownHandlers(NO_HANDLERS);
  const prepare = (name: string, run: Handler, mocked?: Handler): [string, Handler] => {
    const more = mocked === undefined ? {} : { mock: mocked, mocksAll: mocksAll && CALLS_OUT.has(name) };
    return [name, withoutStacks(preparedHandler({ name, known: known.get(name)!, run, ...more }))];
  };
  return {
    handlers: new Map([
      prepare("http", httpHandler(client, host), mockHttp(host)),
      // Nothing is configured: a workflow can be tried all the same, but nobody in production is to get a made-up answer.
      prepare("llm", hasLlm || isProd ? llmHandler(client, host, settings) : cannedAnswer, mockLlm(host)),
      prepare("transform", transform),
      ...documents.handlers.map(({ name, run, mock: mocked }) => prepare(name, run, mocked)),
    ]),
    close: async () => {
      await documents.close();
      await client.close();
    },
  };
}

/** What `--mock` keeps from leaving the process. */
const CALLS_OUT: ReadonlySet<string> = new Set(["http", "llm", "llm.extract", "notify"]);

/** Templates and expressions were resolved by the engine: `expression` and `fields` have become `value` at submit. */
const transform: Handler = ({ config }) => (config as { readonly value: Json }).value;

/** Its failures say by their code all that their users can use: where in this package they were found is no news. */
function withoutStacks(handler: Handler): Handler {
  const rethrow = (error: unknown): never => {
    if (isHandlerError(error)) Object.defineProperty(error, "stack", { value: undefined });
    throw error;
  };
  return (call) => {
    try {
      const output = handler(call);
      return output instanceof Promise ? output.catch(rethrow) : output;
    } catch (error) {
      return rethrow(error);
    }
  };
}

function listOf(text: string | undefined): readonly string[] {
  return (text ?? "").split(/[\s,]+/).filter((entry) => entry !== "");
}

/** With its port: the machine that serves the model may serve other things that are nobody's business. */
function hostOf(baseUrl: string | undefined): readonly string[] {
  const url = URL.parse(baseUrl ?? "");
  if (url === null) return [];
  const host = `${url.hostname}:${url.port || (url.protocol === "http:" ? 80 : 443)}`;
  // Of one that nobody can call, the call tells it.
  return egressEntryOf(host) === undefined ? [] : [host];
}
