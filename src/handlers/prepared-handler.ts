import { isMocked, type KnownHandler } from "../definition/handlers.ts";
import { errorMessage } from "../errors/registry.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import { type Handler, HandlerError } from "../worker/handler.ts";

export interface Preparation {
  readonly name: string;
  readonly known: KnownHandler;
  readonly run: Handler;
  /** What it does instead when it is mocked by `true`. */
  readonly mock?: Handler;
  /** Mock every call: `--mock`. A value that a config gives as its mock still counts. */
  readonly mocksAll?: boolean;
}

/** What is wrong with a config or an output, as an error's details tell it. */
export interface Fault {
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
}

/**
 * A handler as a worker calls it. Its config is checked for the second time: at submit a template stood for any value,
 * now it is the value, secrets and large values included. Then the mock, if one was asked for, else the handler itself;
 * neither sees the key `mock`.
 */
export function preparedHandler({ name, known, run, mock, mocksAll = false }: Preparation): Handler {
  return (call) => {
    if (!isJsonObject(call.config)) throw configInvalid(call.nodeId, [{ path: "", message: "it must be an object" }]);
    const given = mocksAll && !isMocked(call.config) ? { ...call.config, mock: true } : call.config;
    const faults = known.check(given, true);
    if (faults.length > 0) {
      throw configInvalid(
        call.nodeId,
        faults.map(({ pointer, reason, hint }) => ({
          path: pointer,
          message: reason,
          ...(hint !== undefined && { hint }),
        })),
      );
    }
    const { mock: standIn, ...config } = given;
    if (!isMocked(given)) return run({ ...call, config });
    if (standIn !== true) return standIn as Json;
    if (mock !== undefined) return mock({ ...call, config });
    const message = `${name} has no mock of its own; give "mock" the value it should return`;
    throw configInvalid(call.nodeId, [{ path: "/mock", message }]);
  };
}

export function configInvalid(nodeId: string, faults: readonly Fault[]): HandlerError {
  const message = errorMessage("CONFIG_INVALID", { id: nodeId, reason: faults[0]!.message });
  return new HandlerError("CONFIG_INVALID", message, { retryable: false, details: { errors: asJson(faults) } });
}

export function outputInvalid(faults: readonly Fault[]): HandlerError {
  const { path, message: reason } = faults[0]!;
  const message = `The output is not what the handler promised: ${path === "" ? "" : `at "${path}": `}${reason}`;
  return new HandlerError("OUTPUT_INVALID", message, { retryable: false, details: { errors: asJson(faults) } });
}

function asJson(faults: readonly Fault[]): Json {
  return faults.map((fault) => ({ ...fault }));
}
