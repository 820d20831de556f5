import { isJsonObject, type Json } from "../../json/json.ts";
import type { Call, Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { oneLine, printJson, printTable } from "../print.ts";
import { connect, segment } from "../server.ts";
import { reviewOf } from "./decide.ts";

interface Review {
  readonly id: string;
  readonly status: string;
  readonly workflow: string;
  readonly node_id: string;
  readonly title: string | null;
  readonly assignees: readonly string[];
  readonly values: Json;
  readonly confidence: Json;
  readonly source: Json;
  readonly four_eyes: boolean;
  readonly first: {
    readonly decision: string;
    readonly by: string;
    readonly comment?: string;
    readonly data?: Json;
  } | null;
  readonly escalates_at: string | null;
  readonly due_at: string | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await reviewOf(server, call.args[0]!);
  const review = await server.get<Review>(`/v1/reviews/${segment(id)}`);
  if (call.json) {
    printJson(call, review);
    return EXIT.done;
  }
  const { terminal } = call;
  terminal.out(`${oneLine(review.title ?? review.node_id)} (${oneLine(review.workflow)}), ${review.status}\n`);
  if (review.assignees.length > 0) terminal.out(`for ${oneLine(review.assignees.join(", "))}\n`);
  if (review.escalates_at !== null) terminal.out(`others are asked at ${review.escalates_at}\n`);
  if (review.due_at !== null) terminal.out(`due ${review.due_at}\n`);
  if (review.four_eyes) {
    const { first } = review;
    terminal.out(
      first === null ? "needs two people\n" : `${oneLine(first.by)} said ${first.decision}; a second has to\n`,
    );
    if (first?.comment !== undefined) terminal.out(`"${oneLine(first.comment)}"\n`);
  }
  printFields(call, review);
  return EXIT.done;
};

/** What was proposed, and beside it what the first of two made of it: who approves without data approves that. */
function printFields(call: Call, { values, first, confidence, source }: Review): void {
  const said = first?.data ?? null;
  if (first?.decision === "approve" && first.data === undefined) {
    call.terminal.out("what was filled in is too large to be shown: give the data that you approve\n");
  }
  if (said !== null && !isJsonObject(said)) call.terminal.out(`filled in: ${oneLine(textOf(said))}\n`);
  const columns = [values, said, confidence, source].map((of) => (isJsonObject(of) ? of : {}));
  const names = new Set([...Object.keys(columns[0]!), ...Object.keys(columns[1]!)]);
  if (names.size === 0) return;
  const isSaid = isJsonObject(said);
  const shown = isSaid ? columns : columns.toSpliced(1, 1);
  const rows = Array.from(names, (name) => [name, ...shown.map((of) => (name in of ? textOf(of[name]!) : ""))]);
  const heads = ["FIELD", "VALUE", ...(isSaid ? [oneLine(first!.by).toUpperCase()] : []), "CONFIDENCE", "SOURCE"];
  printTable(call, heads, rows);
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
