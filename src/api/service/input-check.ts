import type { Json } from "../../json/json.ts";
import type { SchemaFault } from "../../json/schema.ts";
import type { Definition } from "./definitions.ts";
import { type Fault, Refusal } from "./refusal.ts";

/** Throws unless the input fits what the workflow asks for. */
export function checkInput(definition: Definition, input: Json): void {
  const faults = definition.inputFaults(input);
  if (faults.length > 0) throw inputInvalid(faults.map((fault) => inputFault(fault, "/input_params")));
}

export function inputFault({ pointer, reason }: SchemaFault, at: string): Fault {
  return { code: "INPUT_INVALID", path: at + pointer, message: `The value at "${at}${pointer}" ${reason}.` };
}

export function inputInvalid(errors: readonly Fault[]): Refusal {
  const reason = errors[0]!.message.replace(/\.$/, "");
  return new Refusal("INPUT_INVALID", { reason }, { errors: errors.slice(0, 1_000) });
}
