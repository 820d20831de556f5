import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";

export const EACH: unique symbol = Symbol("each");

/** What an option may be: anything, or an object with options of its own. */
type Known = true | KnownOptions;

export interface KnownOptions {
  readonly [name: string]: Known;
  /** The names are the author's; under each stands an object with these options. */
  readonly [EACH]?: KnownOptions;
}

/** All names, so that an option that is added to a type has to be added here. */
export type Names<Options> = Readonly<Record<keyof Options, Known>>;

/** Plain JavaScript has nobody who tells of a misspelt option, and what it should do would not be done. */
export function checkOptions(of: string, known: KnownOptions, options: object, path: readonly string[] = []): void {
  for (const [name, value] of Object.entries(options as Readonly<Record<string, unknown>>)) {
    if (value === undefined) continue;
    const own = known[EACH] ?? (Object.hasOwn(known, name) ? known[name] : undefined);
    if (own === undefined) throw unknownOption(path.length === 0 ? of : `${path.join(".")} of ${of}`, known, name);
    if (own !== true && typeof value === "object" && value !== null) checkOptions(of, own, value, [...path, name]);
  }
}

function unknownOption(of: string, known: KnownOptions, name: string): TypeError {
  const near = nearestName(name, Object.keys(known));
  const hint = near === undefined ? `It has ${Object.keys(known).join(", ")}` : `Did you mean ${quote(near)}?`;
  return new TypeError(`${quote(name)} is no option of ${of}. ${hint}`);
}
