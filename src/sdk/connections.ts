import type { Agent, Dispatcher, RequestInit } from "undici";
import { isSilence } from "./api-error.ts";

/** The server decides within 10 s, or says that it could not. */
export const ANSWER_MS = 12_000;
/** What a slow line still carries; and the server waits no longer for a request. */
const BYTES_PER_MS = 100;
const LONGEST_UPLOAD_MS = 30_000;

/** How long the other side may say nothing. */
export interface Silences {
  /** Until an answer begins, besides the time that the body takes to get there. */
  readonly answerMs: number;
  /** While it goes on; 0 = for ever. */
  readonly pauseMs: number;
}

export interface Answered {
  readonly response: Response;
  /** All that the response says. */
  readonly text: () => Promise<string>;
}

/** Connections of our own to a server: those of Node's fetch notice after five minutes that they have died. */
export class Connections {
  #agent: Agent | undefined;

  async fetch(
    url: string,
    init: RequestInit & { readonly body?: Uint8Array },
    { answerMs, pauseMs }: Silences,
  ): Promise<Answered> {
    const uploadMs = Math.min(LONGEST_UPLOAD_MS, (init.body?.length ?? 0) / BYTES_PER_MS);
    const limits = { headersTimeout: Math.ceil(answerMs + uploadMs), bodyTimeout: pauseMs };
    const limited: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
      dispatch({ ...options, ...limits }, handler);
    const undici = await import("undici");
    // As Node's own fetch has it.
    const { Agent, EnvHttpProxyAgent } = undici;
    const Pool = process.env["NODE_USE_ENV_PROXY"] === "1" ? EnvHttpProxyAgent : Agent;
    const agent = (this.#agent ??= new Pool({ allowH2: false }) as Agent);
    const noticing = async <Result>(asked: Promise<Result>): Promise<Result> => {
      try {
        return await asked;
      } catch (error) {
        if (isSilence(error)) this.#leave(agent);
        throw error;
      }
    };
    const response = await noticing(undici.fetch(url, { ...init, dispatcher: agent.compose(limited) }));
    return { response, text: () => noticing(response.text()) };
  }

  /** What is under way is cut off. */
  async close(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    await agent?.destroy();
  }

  /** The others that it keeps may have died with one: what comes next goes over a new one. */
  #leave(agent: Agent): void {
    if (this.#agent !== agent) return;
    this.#agent = undefined;
    // What is still under way over it has limits of its own.
    agent.close().catch(() => undefined);
  }
}
