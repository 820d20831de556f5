import { attempt } from "./cel-run.ts";
import { boolean } from "./cel-operators.ts";
import { ExpressionFailure, unresolved } from "./failure.ts";
import { exceeded } from "./meter.ts";
import { typeName } from "./value.ts";
import type { Code, Run } from "./cel-run.ts";
import type { Value } from "./value.ts";

const MAX_ELEMENTS = 1_000;

/** The macros over lists, and how many expressions each takes after its variable. */
const BODIES: ReadonlyMap<string, readonly number[]> = new Map([
  ["map", [1, 2]],
  ["filter", [1]],
  ["exists", [1]],
  ["all", [1]],
  ["exists_one", [1]],
]);

export const MACRO_NAMES: readonly string[] = [...BODIES.keys()];

export function isMacro(name: string, argumentCount: number): boolean {
  return BODIES.get(name)?.includes(argumentCount - 1) ?? false;
}

/** A macro whose variable is `run.locals[depth]`. An object is gone through by its keys, as in CEL. */
export function macro(name: string, list: Code, bodies: readonly Code[], depth: number): Code {
  const body = bodies[0]!;
  const filtered = bodies.length === 2 || name === "filter" || name === "exists_one";
  const transform = bodies[1] ?? (name === "map" ? body : undefined);

  return (run) => {
    const elements = elementsOf(name, list(run));
    const round = (code: Code, element: Value): Value => {
      run.meter.step();
      run.locals[depth] = element;
      return code(run);
    };
    if (name === "exists" || name === "all") return quantifier(name, body, elements, run, depth);

    const test = (element: Value): boolean => boolean(round(body, element), `${name}()`);
    const chosen = filtered ? elements.filter(test) : elements;
    if (name === "exists_one") return chosen.length === 1;
    return transform === undefined ? chosen : chosen.map((element) => round(transform, element));
  };
}

/** One element that decides is enough, even if others failed. */
function quantifier(name: string, body: Code, elements: readonly Value[], run: Run, depth: number): boolean {
  const decisive = name === "exists";
  let failure: ExpressionFailure | undefined;
  for (const element of elements) {
    run.meter.step();
    run.locals[depth] = element;
    const outcome = attempt((each) => boolean(body(each), `${name}()`), run);
    if (outcome === decisive) return decisive;
    if (outcome instanceof ExpressionFailure) failure ??= outcome;
  }
  if (failure !== undefined) throw failure;
  return !decisive;
}

function elementsOf(name: string, value: Value): readonly Value[] {
  if (typeof value !== "object" || value === null)
    throw unresolved(`${name}() needs a list, and got ${typeName(value)}.`);
  const elements: readonly Value[] = Array.isArray(value) ? (value as readonly Value[]) : Object.keys(value);
  if (elements.length > MAX_ELEMENTS) throw exceeded(`a list of more than ${MAX_ELEMENTS} elements for ${name}()`);
  return elements;
}
