import { counted } from "../../errors/counted.ts";
import { BUILTIN_HANDLERS } from "../../definition/builtin-handlers.ts";
import { shownDuration } from "../../drawing/states.ts";
import type { Verb } from "../call.ts";
import { definitionText, goodDefinition, withFunctions } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { catalogueOf } from "../handler-catalogue.ts";
import { planWorkflow, type WorkflowPlan } from "../worst-case.ts";

/** More names than this on one line help nobody. */
const MAX_NAMES = 12;

export const verb: Verb = async (call) => {
  const [file] = call.args as [string];
  const text = await definitionText(call.terminal, file);
  const given = await catalogueOf(call, [text]);
  const workflow = await goodDefinition(text, { ...given, allowMissing: true });
  const known = text.parts === undefined ? given : withFunctions(given, text.parts);
  const plan = planWorkflow(workflow);
  const missing = plan.handlers.filter((name) => !BUILTIN_HANDLERS.has(name) && known.get(name) === undefined);
  if (call.json) {
    const { criticalPath, worstCaseSeconds, timeoutSeconds, maxParallel, ...rest } = plan;
    const told = {
      name: workflow.name,
      ...rest,
      max_parallel_nodes: maxParallel,
      critical_path: criticalPath,
      worst_case_seconds: worstCaseSeconds,
      timeout_seconds: timeoutSeconds,
      handlers_missing: missing,
    };
    call.terminal.out(`${JSON.stringify(told, null, 2)}\n`);
  } else call.terminal.out(shown(workflow.name, plan, missing));
  return EXIT.done;
};

function shown(name: string, plan: WorkflowPlan, missing: readonly string[]): string {
  const { worstCaseSeconds, timeoutSeconds, maxParallel, unknown } = plan;
  const bound = maxParallel === null ? "" : `, at most ${maxParallel} at a time (max_parallel_nodes)`;
  const cut = timeoutSeconds > 0 && timeoutSeconds < worstCaseSeconds ? ", cut off by the workflow's timeout" : "";
  const lines = [
    `${name}   ${counted(plan.nodes, "node")} in ${counted(plan.levels, "level")}`,
    "",
    `critical path    ${some(plan.criticalPath, " → ")}`,
    `worst-case time  ${shownDuration(worstCaseSeconds * 1_000)} if every attempt runs into its time limit${cut}`,
    `workflow timeout ${timeoutSeconds === 0 ? "none" : shownDuration(timeoutSeconds * 1_000)}`,
    `width            ${plan.width} side by side${bound}`,
    `handlers         ${some(plan.handlers, ", ") || "none besides those of the engine"}`,
    `missing handlers ${some(missing, ", ") || "none"}`,
  ];
  if (unknown.length > 0) {
    lines.push("", "not counted in the time:");
    for (const { id, why } of unknown.slice(0, MAX_NAMES)) lines.push(`  ${id}: ${why}`);
    if (unknown.length > MAX_NAMES) lines.push(`  … and ${unknown.length - MAX_NAMES} more`);
  }
  return `${lines.join("\n")}\n`;
}

function some(names: readonly string[], separator: string): string {
  const more = names.length - MAX_NAMES;
  return names.slice(0, MAX_NAMES).join(separator) + (more > 0 ? `${separator}… ${more} more` : "");
}
