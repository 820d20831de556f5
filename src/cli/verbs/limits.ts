import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { amountOption } from "../given-values.ts";
import { printLimits, type ShownLimit } from "../limits-table.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { Listed } from "../shapes.ts";

const MAX_SHOWN = 10_000;
const MAX_BUDGETS = 100;

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const [, action] = call.command.split(" ");
  const page = await (action === undefined || action === "ls"
    ? server.list<ShownLimit>("/v1/limits", {}, MAX_SHOWN)
    : server.post<Listed<ShownLimit>>(
        `/v1/limits/${segment(call.args[0]!)}/${action === "set" ? "override" : action}`,
        {
          ...(action === "set" && { body: ruleGiven(call) }),
          // Of a limit by key, one after the other.
          isLong: true,
        },
      ));
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("nothing is limited: no execution has met a limit yet\n");
  else printAll(call, page.items);
  return EXIT.done;
};

/** Every execution may have a budget, and what all share must be seen among them. */
function printAll(call: Call, limits: readonly ShownLimit[]): void {
  const budgets = limits.filter(({ kind }) => kind === "budget");
  const left = new Set(budgets.slice(MAX_BUDGETS));
  printLimits(
    call,
    limits.filter((one) => !left.has(one)),
  );
  if (left.size > 0) call.terminal.err(`and ${left.size} more budgets: millrace budgets --limit ${budgets.length}\n`);
}

/** What is to count instead of what the definitions say: nothing, if they are to count again. */
function ruleGiven(call: Call): object {
  return {
    rate: amountOption(call, "rate"),
    per: option(call, "per"),
    burst: amountOption(call, "burst"),
    concurrency: amountOption(call, "concurrency"),
    tokens_per_minute: amountOption(call, "tokens-per-minute"),
    tokens_burst: amountOption(call, "tokens-burst"),
    usd: amountOption(call, "usd"),
    tokens: amountOption(call, "tokens"),
    calls: amountOption(call, "calls"),
    seconds: amountOption(call, "seconds"),
  };
}
