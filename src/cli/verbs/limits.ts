import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { amountOption } from "../given-values.ts";
import { printLimits, type ShownLimit } from "../limits-table.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { Listed } from "../shapes.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const [, action] = call.command.split(" ");
  const page = await (action === undefined || action === "ls"
    ? server.get<Listed<ShownLimit>>("/v1/limits", { limit: "500" })
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
  else printLimits(call, page.items);
  return EXIT.done;
};

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
