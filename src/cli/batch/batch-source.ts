import { setTimeout as sleep } from "node:timers/promises";
import { LOCAL } from "../../api/service/caller.ts";
import type { ShownBatch } from "../../api/service/batches.ts";
import type { Service } from "../../api/service/service.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Json } from "../../json/json.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { segment, type Server } from "../server.ts";
import type { ShownExplanation } from "../shapes.ts";
import { itemsInVain } from "./items-in-vain.ts";

export interface BatchItem {
  readonly index: number;
  readonly status: string;
  readonly execution_id: string | null;
  readonly output: Json;
  readonly error: Json;
}

export interface ItemPage {
  readonly items: readonly BatchItem[];
  readonly next_cursor: string | null;
}

/** Where batches run: on a server, or in this process. */
export interface BatchSource {
  create(body: { readonly [name: string]: Json }, key: string): Promise<{ readonly batch_id: string }>;
  get(id: string): Promise<ShownBatch>;
  items(id: string, cursor: string | undefined): Promise<ItemPage>;
  /** Nothing to try again is no error. */
  retry(id: string, key: string): Promise<void>;
  /** The whole output of the execution of an item. */
  output(execution: string): Promise<Json>;
  /**
   * Where nobody else can join: the nodes at which all items that run wait for handlers that nobody brings; none if one of
   * them may go on.
   */
  inVain?(id: string): Promise<readonly ShownExplanation[]>;
}

const PAGE = 500;

export function serverBatches(server: Server): BatchSource {
  const at = (id: string): string => `/v1/batches/${segment(id)}`;
  return {
    create: (body, key) => patiently(() => server.post("/v1/batches", { body, key })),
    get: (id) => patiently(() => server.get(at(id))),
    items: (id, cursor) => patiently(() => server.get(`${at(id)}/items`, { limit: String(PAGE), cursor })),
    retry: async (id, key) => {
      try {
        await patiently(() => server.post(`${at(id)}/retry`, { key }));
      } catch (error) {
        if (!(error instanceof Failure) || !isNothingToRetry(error.code)) throw error;
      }
    },
    output: (execution) => patiently(() => server.get(`/v1/executions/${segment(execution)}/output`)),
  };
}

/** @param bringsNobody whether a handler is waited for in vain; left out where others can join and bring it */
export function localBatches(service: Service, bringsNobody?: (handler: string) => boolean): BatchSource {
  const { batches, executions } = service;
  return {
    create: async (body, key) => batches.create({ ...LOCAL, key }, body as never),
    get: (id) => batches.get(id),
    items: async (id, cursor) => JSON.parse(await batches.items(id, undefined, { limit: PAGE, cursor })) as ItemPage,
    retry: async (id, key) => {
      try {
        await batches.retry({ ...LOCAL, key }, id);
      } catch (error) {
        if (!(error instanceof MillraceError) || !isNothingToRetry(error.code)) throw error;
      }
    },
    output: async (execution) => JSON.parse(await executions.output(execution)) as Json,
    ...(bringsNobody !== undefined && { inVain: (id: string) => itemsInVain(service, id, bringsNobody) }),
  };
}

/** All of it has completed, or somebody else has had it tried again. */
function isNothingToRetry(code: string | undefined): boolean {
  return code === "NOT_RETRYABLE" || code === "EXECUTION_OPEN";
}

/** A server that is being restarted is waited for; everything that is asked may be asked again. */
const PATIENCE = 60;

async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const isAway = error instanceof Failure && error.exit === EXIT.unreachable;
      if (!isAway || attempt === PATIENCE) throw error;
      await sleep(1_000);
    }
  }
}
