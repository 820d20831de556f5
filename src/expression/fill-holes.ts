import type { Hole } from "./scope.ts";
import type { Json } from "../json/json.ts";

export interface HoleSources {
  /** Whose secrets they are: the server's, which fills them in for workers over HTTP, or the worker's own. */
  readonly of?: "server";
  secret(name: string): string | undefined;
  blob(hash: string): Json | undefined;
}

/** A secret or value that a task needs is not to be had here. */
export class HoleUnfilled extends Error {
  override readonly name = "HoleUnfilled";
  readonly code: "SECRET_MISSING" | "VALUE_MISSING";

  constructor(code: "SECRET_MISSING" | "VALUE_MISSING", message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Puts secrets and large values where the engine left a hole, and nowhere else. No resolved text is looked at: an
 * upstream answer that contains `{{ secrets.TOKEN }}` stays just that text.
 */
export function fillHoles(config: Json, holes: readonly Hole[], sources: HoleSources): Json {
  if (holes.length === 0) return config;
  const filled = structuredClone(config);
  let root: Json = filled;
  for (const hole of holes) {
    const value = holeValue(hole, sources);
    if (hole.pointer === "") root = value;
    else setAt(root, hole.pointer, value);
  }
  return root;
}

function holeValue(hole: Hole, sources: HoleSources): Json {
  if (hole.kind === "blob") {
    const value = sources.blob(hole.ref.hash);
    if (value === undefined)
      throw new HoleUnfilled("VALUE_MISSING", `The value at ${hole.pointer} is not in the store`);
    return value;
  }
  return hole.parts
    .map((part) => {
      if ("text" in part) return part.text;
      const secret = sources.secret(part.secret);
      if (secret === undefined) throw new HoleUnfilled("SECRET_MISSING", secretMissing(part.secret, sources.of));
      return secret;
    })
    .join("");
}

function secretMissing(name: string, of: HoleSources["of"]): string {
  const who = of === "server" ? "the server, which fills in secrets for workers over HTTP" : "the worker";
  return `The secret ${name} is missing: set MILLRACE_SECRET_${name} in the environment of ${who}`;
}

function setAt(root: Json, pointer: string, value: Json): void {
  const steps = pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = steps.pop()!;
  let place = root as Record<string, Json>;
  for (const step of steps) place = place[step] as Record<string, Json>;
  Object.defineProperty(place, last, { value, enumerable: true, configurable: true, writable: true });
}
