import type { Json, JsonObject } from "../../json/json.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../print.ts";
import { connect, segment, withQuery } from "../server.ts";
import { wouldRun } from "./act.ts";

export const verb: Verb = async (call) => {
  const from = option(call, "from");
  if (from === undefined)
    throw new Failure(EXIT.usage, "--from NODE is missing.", { hint: "millrace rerun <execution> --from <node>" });
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const changes = changesOf(call);
  const config = changes.length === 0 ? undefined : await changedConfig(from, changes);
  const isDryRun = hasSwitch(call, "dry-run");
  const path = withQuery(`/v1/executions/${segment(id)}/retry`, { dry_run: isDryRun ? "true" : undefined });
  const body = {
    from,
    scope: hasSwitch(call, "only") ? "node" : "descendants",
    ...(config !== undefined && { config }),
  };
  const answer = await server.post<{ readonly status: string; readonly generation: number }>(path, { body });
  if (call.json) printJson(call, answer);
  else if (isDryRun) call.terminal.out(wouldRun(id, answer));
  else call.terminal.out(`${id} ${answer.status.toLowerCase()}, generation ${answer.generation}\n`);
  return EXIT.done;

  /** The retry takes a whole config; people change a part of the one that is there. */
  async function changedConfig(node: string, given: readonly Change[]): Promise<JsonObject> {
    const { workflow, workflow_definition_id: hash } = await server.execution(id);
    const stored = await server.get<{
      readonly definition: { readonly nodes: readonly { readonly id: string; readonly config: JsonObject }[] };
    }>(`/v1/workflows/${segment(workflow)}/versions/${hash}`);
    const found = stored.definition.nodes.find((one) => one.id === node);
    if (found === undefined)
      throw new Failure(EXIT.notFound, `there is no node ${JSON.stringify(node)} in ${workflow}.`);
    return given.reduce<JsonObject>(
      (config, { path: steps, value }) => withValue(config, steps, value) as JsonObject,
      found.config,
    );
  }
};

interface Change {
  readonly path: readonly string[];
  readonly value: Json;
}

function changesOf(call: Call): readonly Change[] {
  const given = call.options["set"];
  if (!Array.isArray(given)) return [];
  return (given as readonly string[]).map((text) => {
    const equals = text.indexOf("=");
    const path = text.slice(0, Math.max(0, equals));
    if (path === "") throw new Failure(EXIT.usage, `--set must be path=json, not ${JSON.stringify(text)}.`);
    try {
      return { path: path.split("."), value: JSON.parse(text.slice(equals + 1)) as Json };
    } catch {
      throw new Failure(EXIT.usage, `--set ${path} must be JSON, not ${JSON.stringify(text.slice(equals + 1))}.`, {
        hint: `a text needs quotes: --set '${path}="${text.slice(equals + 1)}"'`,
      });
    }
  });
}

/** The same value with one place changed; places that are not there are made. */
function withValue(value: Json | undefined, [step, ...rest]: readonly string[], given: Json): Json {
  if (step === undefined) return given;
  if (Array.isArray(value) && /^\d+$/.test(step)) {
    return (value as readonly Json[]).map((item, i) => (i === Number(step) ? withValue(item, rest, given) : item));
  }
  const object = typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  return { ...object, [step]: withValue(Object.hasOwn(object, step) ? object[step] : undefined, rest, given) };
}
