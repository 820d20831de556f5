import { nodeHost } from "../host/node-host.ts";
import { Client } from "./client.ts";
import { type Duration, durationMs } from "./duration.ts";
import { HttpBackend } from "./http-backend.ts";
import { HttpClient } from "./http-client.ts";
import { checkOptions, type Names } from "./known-options.ts";

export interface ConnectOptions {
  /** By default MILLRACE_URL, or the address of `millrace dev`. */
  readonly url?: string;
  /** A key of the server; by default MILLRACE_API_KEY. None is needed on the server's own machine. */
  readonly token?: string;
  /** How long a request is tried again while the server is busy or not there; 10 s by default. */
  readonly retryFor?: Duration;
}

const CONNECT_OPTIONS: Names<ConnectOptions> = { url: true, token: true, retryFor: true };

const DEFAULT_URL = "http://127.0.0.1:4747";

/** A client of a server. Nothing is sent before it is asked for something. */
export function connect(options: ConnectOptions = {}): Client {
  checkOptions("connect", CONNECT_OPTIONS, options);
  return new Client(new HttpBackend(httpClient(options), nodeHost), nodeHost);
}

export function httpClient({ url, token, retryFor = "10s" }: ConnectOptions): HttpClient {
  const { MILLRACE_URL } = process.env;
  return new HttpClient({
    url: url ?? (MILLRACE_URL || DEFAULT_URL),
    token: tokenOf({ token }),
    host: nodeHost,
    patienceMs: durationMs(retryFor, "retryFor"),
  });
}

export function tokenOf({ token }: { readonly token?: string | undefined }): string | undefined {
  return token ?? (process.env["MILLRACE_API_KEY"] || undefined);
}
