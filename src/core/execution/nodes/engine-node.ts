import type { Json, JsonObject } from "../../../json/json.ts";
import { isJsonObject } from "../../../json/json.ts";
import type { BlobDraft, Context, Need } from "../../machine.ts";
import type { ErrorValue, Message } from "../../message.ts";
import type { Value } from "../../value.ts";
import type { EndStatus, MapOpened, Wait } from "../events.ts";
import { prepareInline } from "../prepare.ts";
import type { ExecutionState } from "../state.ts";

/** What a node that the engine runs itself comes to. */
export type EngineResult =
  | { readonly kind: "completed"; readonly output: Json }
  /** Done with a value that is there already: a signal's data. */
  | { readonly kind: "taken"; readonly value: Value; readonly signal: string }
  | { readonly kind: "failed"; readonly error: ErrorValue }
  | { readonly kind: "needs"; readonly needs: readonly Need[] }
  | {
      readonly kind: "waits";
      readonly wait: Wait;
      readonly dueAtMs: number | null;
      readonly mail?: readonly Message[];
      readonly blobs?: readonly BlobDraft[];
    }
  | {
      readonly kind: "opens";
      readonly map: Omit<MapOpened, "kind" | "atMs" | "node">;
      readonly blobs: readonly BlobDraft[];
    }
  | {
      readonly kind: "ends";
      readonly status: Extract<EndStatus, "completed" | "failed">;
      readonly output: Json | undefined;
      readonly message: string | undefined;
    };

export type EngineNode = (state: ExecutionState, unit: number, context: Context) => EngineResult;

export type Config =
  | { readonly kind: "config"; readonly config: JsonObject }
  | Extract<EngineResult, { kind: "failed" | "needs" }>;

/** The resolved config of an engine's own node. */
export function configOf(state: ExecutionState, unit: number, context: Context): Config {
  const preparation = prepareInline(state, unit, context);
  if (preparation.kind !== "prepared") return preparation;
  const { config } = preparation.prepared;
  return { kind: "config", config: isJsonObject(config) ? config : {} };
}

/** A config that is not what it has to be, now that its templates are filled in. */
export function invalid(pointer: string, reason: string): Extract<EngineResult, { kind: "failed" }> {
  const field = pointer.slice(1);
  const error = { code: "CONFIG_INVALID", message: `"${field}" ${reason}`, retryable: false, details: { pointer } };
  return { kind: "failed", error };
}

/** A node may come with its own result, for trying a workflow out: `config.mock`. */
export function mockOf(config: JsonObject): Json | undefined {
  const { mock } = config;
  return mock === false ? undefined : mock;
}
