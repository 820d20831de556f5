import { parseToken } from "../core/token.ts";
import { errorValue } from "../worker/error-value.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";
import type { ExecutionView } from "./backend.ts";

/** Of how many nodes what they threw last is remembered. */
const MAX_REMEMBERED = 1_000;

/** What functions in this process have thrown: as it was, for whoever is told that a run of theirs has failed. */
export class ThrownErrors {
  readonly #last = new Map<string, unknown>();

  /** The same handler, of which it is remembered what it throws. */
  of(handler: Handler): Handler {
    return (call) => {
      const remember = (thrown: unknown): never => {
        this.#remember(call, thrown);
        throw thrown;
      };
      try {
        const output = handler(call);
        return output instanceof Promise ? output.catch(remember) : output;
      } catch (thrown) {
        return remember(thrown);
      }
    };
  }

  /** What a run has failed by, if it was thrown here: a later attempt may have failed by something else, such as its time. */
  causeOf({ execution_id: execution, error }: Pick<ExecutionView, "execution_id" | "error">): unknown {
    if (error?.node_id === undefined) return undefined;
    const thrown = this.#last.get(keyOf(execution, error.node_id));
    const { code, message } = errorValue(thrown);
    return code === error.code && message === error.message ? thrown : undefined;
  }

  #remember({ executionId, nodeId, token }: HandlerCall, thrown: unknown): void {
    // The token knows which item of a map it was.
    const instance = parseToken(token)?.instance.replace(/@\d+$/, "") ?? nodeId;
    const key = keyOf(executionId, instance);
    this.#last.delete(key);
    this.#last.set(key, thrown);
    if (this.#last.size > MAX_REMEMBERED) this.#last.delete(this.#last.keys().next().value!);
  }
}

function keyOf(execution: string, node: string): string {
  return `${execution} ${node}`;
}
