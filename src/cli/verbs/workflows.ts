import type { Json } from "../../json/json.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption } from "../given-values.ts";
import { printJson, printTable } from "../print.ts";
import { connect, withQuery, workflowPath } from "../server.ts";
import { definitionFor } from "../submission.ts";

interface Named {
  readonly name: string;
  readonly version: number;
  readonly workflow_definition_id: string;
}

/** `workflow ls`, `show`, `versions` and `push`. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  if (call.command === "workflow push") {
    const { settings } = await call.settings();
    const source = await definitionFor(call, server, call.args[0]!);
    const path = withQuery("/v1/workflows", {
      allow_missing_handlers: settings.allowMissingHandlers ? "true" : undefined,
    });
    const pushed = await server.post<Named>(path, { source, key: option(call, "key") });
    if (call.json) printJson(call, pushed);
    else call.terminal.out(`${pushed.name} version ${pushed.version}\n`);
    return EXIT.done;
  }
  if (call.command === "workflow show") {
    const [name, version] = call.args as [string, string?];
    const stored = await server.get<Named & { readonly definition: Json }>(workflowPath(name, version));
    printJson(call, call.json ? stored : stored.definition);
    return EXIT.done;
  }
  const page =
    call.command === "workflow versions"
      ? await server.list<Named>(`${workflowPath(call.args[0]!)}/versions`, {}, Number.POSITIVE_INFINITY)
      : await server.list<Named>("/v1/workflows", {}, countOption(call, "limit", 50, 100_000));
  if (call.json) printJson(call, page);
  else
    printTable(
      call,
      ["NAME", "VERSION", "DEFINITION"],
      page.items.map((one) => [one.name, String(one.version), one.workflow_definition_id]),
    );
  return EXIT.done;
};
