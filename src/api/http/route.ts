import type { z } from "zod";
import type { Json } from "../../json/json.ts";
import type { Caller } from "../service/caller.ts";
import type { Service } from "../service/service.ts";
import type { Permission } from "./permissions.ts";

/** A request, checked, for whoever answers it. */
export interface Call<Query = unknown, Body = unknown> {
  readonly service: Service;
  readonly caller: Caller;
  /** Decoded; whether it can be the id of anything is for the service to say. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Of a route that takes definitions: the body as it came. */
  readonly source: { readonly source: Uint8Array; readonly format: "json" | "yaml" };
  /** Aborted when nobody waits for the answer any more. */
  readonly gone: AbortSignal;
  readonly session: Session;
  header(name: string): string | undefined;
  /** Throws unless the caller may do this too. */
  demand(permission: Permission): void;
}

/** How a browser gets in, where keys are needed. */
export interface Session {
  /** The cookie for this key; undefined if it is none. */
  begin(key: string): Promise<string | undefined>;
  /** The cookie that ends it. */
  end(): string;
  /** Whether the request has come with one that is good. */
  isOpen(): Promise<boolean>;
}

export type Reply =
  | { readonly status: number; readonly json: unknown }
  /** JSON that is written already. */
  | { readonly status: number; readonly text: string; readonly type?: string }
  | { readonly status: 204 }
  | { readonly status: 303; readonly location: string; readonly cookie?: string }
  | { readonly status: 200; readonly stream: (out: EventSink) => Promise<void> };

/** Where an event stream goes. */
export interface EventSink {
  readonly closed: AbortSignal;
  /** False once the client is gone. A backlog waits for the client; what happens now does not. */
  send(frame: string, isBacklog: boolean): Promise<boolean>;
}

export interface RouteBody<Body = unknown> {
  readonly schema: z.ZodType<Body>;
  readonly limitBytes: number;
  /** Of one with a part that is judged by whoever takes it, not with the request. */
  readonly maxDepth?: number;
  /** The body is a definition, in JSON or YAML, which is read by whoever checks it. */
  readonly isDefinition?: boolean;
  /** It comes from a form of ours. */
  readonly isForm?: boolean;
}

export interface RouteAnswer {
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly type?: string;
  /** The type in which it is given as text instead, to who asks for that. */
  readonly textType?: string;
}

/** A header that a route looks at. */
export interface RouteHeader {
  readonly name: string;
  readonly description: string;
}

/** One row of the table that routing, validation, authorisation and the OpenAPI document are made from. */
export interface Route<Query = unknown, Body = unknown> {
  readonly method: "GET" | "POST" | "DELETE";
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly permission: Permission;
  readonly tag: string;
  readonly summary: string;
  readonly query?: z.ZodType<Query>;
  readonly headers?: readonly RouteHeader[];
  readonly body?: RouteBody<Body>;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** Codes of problems that are particular to it. */
  readonly problems?: readonly string[];
  /** To do it again changes nothing, so its answer is not remembered: an Idempotency-Key only keeps another body out. */
  readonly isRepeatable?: boolean;
  /** Makes work: counted by the ingress limit. */
  readonly isIngress?: boolean;
  readonly handle: (call: Call<Query, Body>) => Promise<Reply>;
}

/** Ties the types of query and body to the handler; the table itself does not know them. */
export function route<Query, Body>(row: Route<Query, Body>): Route {
  return row as unknown as Route;
}

export function json(status: number, value: unknown): Reply {
  return { status, json: value };
}

export function asJson(value: unknown): Json {
  return value as Json;
}
