import { KnownHandlers, NO_HANDLERS } from "../definition/handlers.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import type { Lookup } from "./egress-agent.ts";
import { Egress } from "./egress.ts";
import { HttpClient } from "./http-client.ts";
import { httpHandler } from "./http.ts";
import { llmHandler } from "./llm.ts";
import { mockHttp, mockLlm } from "./mocks.ts";
import { preparedHandler } from "./prepared-handler.ts";

/** Named as the settings are that they come from. */
export interface BuiltinOptions {
  readonly host: Host;
  /** Hosts, `host:port` pairs and CIDR blocks that workflows may call although they are not public. */
  readonly egressAllow?: readonly string[];
  /** Whether workflows may call this machine: `dev`, `run` and embedded engines allow it, `serve` does not. */
  readonly loopback?: boolean;
  /** No call of `http` or `llm` leaves the process. */
  readonly mock?: boolean;
  readonly openaiBaseUrl?: string | undefined;
  readonly openaiApiKey?: string | undefined;
  /** For `llm` nodes that name none. */
  readonly openaiModel?: string | undefined;
  readonly lookup?: Lookup;
}

export interface Builtins {
  /** By name, for a worker. */
  readonly handlers: ReadonlyMap<string, Handler>;
  close(): Promise<void>;
}

/** The built-in handlers that run on workers: `http`, `llm`, `transform`. The rest of the built-in nodes is the engine's. */
export function builtinHandlers(options: BuiltinOptions): Builtins {
  const { host, egressAllow = [], loopback = false, mock: mocksAll = false, lookup } = options;
  const { openaiBaseUrl: baseUrl, openaiApiKey: apiKey, openaiModel: model } = options;
  const egress = new Egress({ allow: [...egressAllow, ...hostOf(baseUrl)], loopback });
  const client = new HttpClient(egress, lookup === undefined ? {} : { lookup });
  const known = new KnownHandlers(NO_HANDLERS);
  const prepare = (name: string, run: Handler, mocked?: Handler): [string, Handler] => {
    const more = mocked === undefined ? {} : { mock: mocked, mocksAll };
    return [name, preparedHandler({ name, known: known.get(name)!, run, ...more })];
  };
  return {
    handlers: new Map([
      prepare("http", httpHandler(client, host), mockHttp(host)),
      prepare("llm", llmHandler(client, host, { baseUrl, apiKey, model }), mockLlm(host)),
      prepare("transform", transform),
    ]),
    close: () => client.close(),
  };
}

/** Templates and expressions were resolved by the engine: `expression` and `fields` have become `value` at submit. */
const transform: Handler = ({ config }) => (config as { readonly value: Json }).value;

/** With its port: the machine that serves the model may serve other things that are nobody's business. */
function hostOf(baseUrl: string | undefined): readonly string[] {
  const url = URL.parse(baseUrl ?? "");
  if (url === null || url.hostname === "") return [];
  return [`${url.hostname}:${url.port || (url.protocol === "http:" ? 80 : 443)}`];
}
