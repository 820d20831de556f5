import { cacheMachine } from "./cache/machine.ts";
import { executionMachine } from "./execution/machine.ts";
import { gateMachine } from "./gate/machine.ts";
import type { Machine } from "./machine.ts";

/** Every kind of entity there is. */
export const MACHINES: readonly Machine[] = [executionMachine, gateMachine, cacheMachine];
