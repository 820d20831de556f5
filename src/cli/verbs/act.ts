import { counted } from "../../errors/counted.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { confirm } from "../confirm.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { momentOption, refuseWithoutAll, statusOption } from "../given-values.ts";
import { printJson, tellGap } from "../print.ts";
import { connect, segment, type Server, withQuery } from "../server.ts";
import type { Gap } from "../shapes.ts";

/** At most so many are acted on by one command: whoever means more, says it again. */
const MAX_AT_ONCE = 10_000;

/** cancel, pause, resume and retry: on ids, or on all that a filter finds; release on ids only. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const { ids, gap } = hasSwitch(call, "all") ? await found(call, server) : await named(call, server);
  const isDryRun = hasSwitch(call, "dry-run");
  const path = (id: string): string =>
    withQuery(`/v1/executions/${segment(id)}/${call.command}`, { dry_run: isDryRun ? "true" : undefined });
  const answers: unknown[] = [];
  // What was to be done to all was not done to what nobody could see.
  let exit: ExitCode = gap.incomplete === undefined ? EXIT.done : EXIT.unreachable;
  for (const id of ids) {
    try {
      const answer = await server.post<Answer>(path(id), { body: {} });
      answers.push(answer);
      if (!call.json) call.terminal.out(isDryRun ? wouldRun(id, answer) : `${id} ${done(answer)}\n`);
    } catch (error) {
      // One that cannot be does not keep the others from being done; the first such says how the command ends.
      if (!(error instanceof Failure) || ids.length === 1) throw error;
      call.terminal.err(`${id}: ${error.message}\n`);
      if (exit === EXIT.done) exit = error.exit;
    }
  }
  if (ids.length === 0 && gap.incomplete === undefined) call.terminal.err(`there is nothing to ${call.command}\n`);
  if (call.json) printJson(call, ids.length === 1 ? answers[0] : answers);
  return exit;
};

interface Answer {
  readonly status?: string;
  /** Of what was in quarantine. How it goes on is not known yet. */
  readonly released?: true;
  readonly rerun?: readonly string[];
  readonly kept?: readonly string[];
}

function done({ status, released }: Answer): string {
  return released === true ? "released" : status!.toLowerCase();
}

export function wouldRun(id: string, { rerun = [], kept = [] }: Answer): string {
  return `${id} would run again: ${rerun.join(", ") || "nothing"}\n${" ".repeat(id.length)} would keep: ${kept.join(", ") || "nothing"}\n`;
}

interface Meant {
  readonly ids: readonly string[];
  readonly gap: Gap;
}

async function named(call: Call, server: Server): Promise<Meant> {
  if (call.args.length === 0) {
    throw new Failure(EXIT.usage, "which execution?", {
      hint: `millrace ${call.command} <execution…>   or --all with a filter`,
    });
  }
  refuseWithoutAll(call, ["status", "workflow", "since"]);
  return { ids: await Promise.all(call.args.map((name) => server.idOf(name))), gap: {} };
}

/** Retry makes sense of what failed, the others of what is open. */
const STANDING: Readonly<Record<string, readonly string[]>> = {
  cancel: ["RUNNING", "PENDING", "PAUSED"],
  pause: ["RUNNING"],
  resume: ["PAUSED"],
  retry: ["FAILED", "PARTIAL"],
};

async function found(call: Call, server: Server): Promise<Meant> {
  if (call.args.length > 0) throw new Failure(EXIT.usage, "either ids or --all, not both.");
  const status = statusOption(call);
  const filter = { workflow: option(call, "workflow"), since: momentOption(call, "since") };
  const ids: string[] = [];
  let gap: Gap = {};
  for (const one of status === undefined ? STANDING[call.command]! : [status]) {
    const { items, incomplete } = await server.list<{ readonly execution_id: string }>(
      "/v1/executions",
      { ...filter, status: one },
      MAX_AT_ONCE,
    );
    ids.push(...items.map(({ execution_id: id }) => id));
    if (incomplete !== undefined) gap = { incomplete };
  }
  tellGap(call, gap);
  // Nothing is done by looking.
  if (ids.length > 0 && !hasSwitch(call, "dry-run")) {
    await confirm(call, `${call.command} ${counted(ids.length, "execution")}`);
  }
  return { ids, gap };
}
