import { counted } from "../../errors/counted.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { confirm } from "../confirm.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { changesOf, countOption, refuseWithoutAll } from "../given-values.ts";
import { printJson, printTable, tellGap } from "../print.ts";
import { connect, segment, type Server } from "../server.ts";
import type { Gap } from "../shapes.ts";

interface RefusedReplay {
  readonly execution_id: string;
  readonly code: string;
  readonly message: string;
}

interface BulkReplay extends Gap {
  readonly count: number;
  readonly errors?: readonly RefusedReplay[];
}

interface Letter {
  readonly id: string;
  readonly class: string;
  readonly status: string;
  readonly execution_id: string | null;
  readonly node_id: string | null;
  readonly handler: string | null;
  readonly rejected_at: string;
  readonly error: { readonly code?: string; readonly message?: string } | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  switch (call.command) {
    case "dlq ls":
      return list(call, server);
    case "dlq show":
      printJson(call, await server.get<Json>(`/v1/dlq/${segment(call.args[0]!)}`));
      return EXIT.done;
    case "dlq retry":
      if (hasSwitch(call, "all")) return retryAll(call, server);
      return each(call, await meant(call, server), async (id) => {
        const config = await editedConfig(call, server, id);
        const answer = await server.post<{ readonly execution_id: string; readonly status: string }>(
          `/v1/dlq/${segment(id)}/retry`,
          { body: { ...(config !== undefined && { config }) } },
        );
        return { told: `${id} runs again in ${answer.execution_id}`, answer };
      });
    default:
      return each(call, await toDrop(call, server), async (id) => {
        await server.delete(`/v1/dlq/${segment(id)}`);
        return { told: `${id} dropped`, answer: { id } };
      });
  }
};

interface Meant {
  readonly ids: readonly string[];
  readonly gap: Gap;
}

/** The letters that were named, or all that pass the filters. */
async function meant(call: Call, server: Server): Promise<Meant> {
  const isAll = hasSwitch(call, "all");
  if (isAll === call.args.length > 0) {
    throw new Failure(EXIT.usage, "name dead letters, or say --all.", { hint: "millrace dlq ls   lists them" });
  }
  if (!isAll) {
    refuseWithoutAll(call, ["dry-run", "class", "queue", "execution", "status", "limit"]);
    return { ids: call.args, gap: {} };
  }
  const query = { ...filterOf(call), status: option(call, "status") };
  const { items, next_cursor: _, ...gap } = await server.list<Letter>("/v1/dlq", query, most(call));
  tellGap(call, gap);
  return { ids: items.map(({ id }) => id), gap };
}

/** What is dropped does not come back. */
async function toDrop(call: Call, server: Server): Promise<Meant> {
  const letters = await meant(call, server);
  const { length } = letters.ids;
  if (hasSwitch(call, "all") && length > 0) {
    await confirm(call, `drop ${length === 1 ? "1 dead letter" : `${length} dead letters`}`);
  }
  return letters;
}

/** All that pass the filters, as one request: those of one execution make one generation. */
async function retryAll(call: Call, server: Server): Promise<ExitCode> {
  if (call.args.length > 0) throw new Failure(EXIT.usage, "name dead letters, or say --all; not both.");
  if (changesOf(call).length > 0) throw new Failure(EXIT.usage, "--set goes with ids, not with --all.");
  const isDryRun = hasSwitch(call, "dry-run");
  const given = Object.entries(filterOf(call)).filter(([, value]) => value !== undefined);
  const body = { filter: Object.fromEntries(given), limit: Math.min(10_000, most(call)), dry_run: isDryRun };
  const answer = await server.post<BulkReplay>("/v1/dlq/retry", { body, isLong: true });
  if (call.json) printJson(call, answer);
  else
    call.terminal.out(
      `${isDryRun ? `${answer.count} would run again` : counted(answer.count, "runs again", "run again")}\n`,
    );
  for (const { execution_id, code, message } of answer.errors ?? []) {
    call.terminal.err(`${execution_id}: ${code}: ${message}\n`);
  }
  tellGap(call, answer);
  return answer.errors === undefined ? exitOf(answer) : EXIT.notAllowed;
}

async function editedConfig(call: Call, server: Server, id: string): Promise<JsonObject | undefined> {
  const changes = changesOf(call);
  if (changes.length === 0) return undefined;
  const { execution_id: execution, node_id: node } = await server.get<Letter>(`/v1/dlq/${segment(id)}`);
  const { changedConfig } = await import("../changed-config.ts");
  return changedConfig(server, execution ?? "", node ?? "", changes);
}

function filterOf(call: Call): Readonly<Record<"class" | "queue" | "execution_id", string | undefined>> {
  return { class: option(call, "class"), queue: option(call, "queue"), execution_id: option(call, "execution") };
}

function most(call: Call): number {
  return countOption(call, "limit", 1_000, 100_000);
}

async function list(call: Call, server: Server): Promise<ExitCode> {
  const query = { ...filterOf(call), status: option(call, "status") };
  const page = await server.list<Letter>("/v1/dlq", query, countOption(call, "limit", 50, 100_000));
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) tellNone(call, page);
  else {
    const rows = page.items.map((one) => [
      one.id,
      one.class,
      one.status,
      one.execution_id ?? "",
      one.node_id ?? "",
      one.rejected_at,
      one.error === null ? "" : `${one.error.code}: ${one.error.message}`,
    ]);
    printTable(call, ["LETTER", "CLASS", "STATUS", "EXECUTION", "NODE", "SINCE", "ERROR"], rows);
  }
  tellGap(call, page);
  return EXIT.done;
}

function tellNone(call: Call, { incomplete }: Gap): void {
  if (incomplete === undefined) call.terminal.err("there are no dead letters\n");
}

/** What was to be done to all was not done to what nobody could see. */
function exitOf({ incomplete }: Gap): ExitCode {
  return incomplete === undefined ? EXIT.done : EXIT.unreachable;
}

/** One after the other; one that cannot be does not keep the rest from being done. */
async function each(
  call: Call,
  { ids, gap }: Meant,
  act: (id: string) => Promise<{ readonly told: string; readonly answer: unknown }>,
): Promise<ExitCode> {
  const answers: unknown[] = [];
  let exit = exitOf(gap);
  for (const id of ids) {
    try {
      const { told, answer } = await act(id);
      answers.push(answer);
      if (!call.json) call.terminal.out(`${told}\n`);
    } catch (error) {
      if (!(error instanceof Failure) || ids.length === 1) throw error;
      call.terminal.err(`${id}: ${error.message}\n`);
      if (exit === EXIT.done) exit = error.exit;
    }
  }
  if (ids.length === 0) tellNone(call, gap);
  if (call.json) printJson(call, ids.length === 1 ? answers[0] : answers);
  return exit;
}
