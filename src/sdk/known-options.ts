import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";

/** All names, so that an option that is added to a type has to be added here. */
export type Names<Options> = Readonly<Record<keyof Options, true>>;

/** Plain JavaScript has nobody who tells of a misspelt option, and what it should do would not be done. */
export function checkOptions(of: string, known: Readonly<Record<string, true>>, options: object): void {
  for (const [name, value] of Object.entries(options)) {
    if (Object.hasOwn(known, name) || value === undefined) continue;
    const near = nearestName(name, Object.keys(known));
    const hint = near === undefined ? `It has ${Object.keys(known).join(", ")}` : `Did you mean ${quote(near)}?`;
    throw new TypeError(`${quote(name)} is no option of ${of}. ${hint}`);
  }
}
