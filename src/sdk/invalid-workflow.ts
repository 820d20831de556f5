import type { Problem } from "../definition/problems.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import { quote } from "../errors/registry.ts";
import type { JsonObject } from "../json/json.ts";

/** A workflow that cannot run, with everything that is wrong with it. */
export class InvalidWorkflow extends MillraceError<"INVALID_DEFINITION"> {
  readonly problems: readonly Problem[];

  constructor(name: string, problems: readonly Problem[], definition?: JsonObject) {
    super("INVALID_DEFINITION", { count: problems.length });
    this.problems = problems;
    const lines = problems.map(({ code, path, message, hint }) => {
      const what = `  ${code}  ${placeOf(path, definition)}\n    ${message}`;
      return hint === undefined ? what : `${what}\n    hint: ${hint}`;
    });
    const count = problems.length === 1 ? "one problem" : `${problems.length} problems`;
    this.message = `The workflow ${quote(name)} has ${count}.\n${lines.join("\n")}`;
  }
}

/** A pointer counts nodes; people name them. */
function placeOf(pointer: string, definition: JsonObject | undefined): string {
  const [, index, rest = ""] = /^\/nodes\/(\d+)(\/.*)?$/.exec(pointer) ?? [];
  const node = (definition?.["nodes"] as readonly JsonObject[] | undefined)?.[Number(index)];
  return node === undefined
    ? pointer
    : `node ${quote(node["id"] as string)}${rest === "" ? "" : ` at ${rest.slice(1)}`}`;
}
