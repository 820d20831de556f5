import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { amountOption, countOption } from "../given-values.ts";
import { printBudgets, type ShownLimit } from "../limits-table.ts";
import { printJson } from "../print.ts";
import { connect, segment, type Server } from "../server.ts";
import type { Listed } from "../shapes.ts";

const UNITS = ["usd", "tokens", "calls", "seconds"] as const;
const MAX_SHOWN = 100_000;

export const verb: Verb = async (call) => {
  const items = call.command === "budgets raise" ? await raised(call) : await listed(call);
  if (call.json) printJson(call, { items, next_cursor: null });
  else if (items.length === 0) call.terminal.err("there is no budget: no execution has met one yet\n");
  else printBudgets(call, items);
  return EXIT.done;
};

async function listed(call: Call): Promise<readonly ShownLimit[]> {
  const limit = countOption(call, "limit", 50, MAX_SHOWN);
  const key = option(call, "key");
  const all = await budgetsOf(await connect(call));
  return all.filter((one) => key === undefined || one.key === key).slice(0, limit);
}

/** Each by its id: a rate may have the same name, and is not meant. */
async function raised(call: Call): Promise<readonly ShownLimit[]> {
  const amounts = Object.fromEntries(UNITS.map((unit) => [unit, amountOption(call, unit)]));
  if (Object.values(amounts).every((amount) => amount === undefined)) {
    throw new Failure(EXIT.usage, "to what is not said.", { hint: "for instance --usd 10, or --tokens 500000" });
  }
  const server = await connect(call);
  const found = await meant(call, server);
  const answers: ShownLimit[] = [];
  for (const { id } of found) {
    const path = `/v1/limits/${segment(id!)}/raise`;
    answers.push(...(await server.post<Listed<ShownLimit>>(path, { body: amounts })).items);
  }
  return answers;
}

async function meant(call: Call, server: Server): Promise<readonly ShownLimit[]> {
  const [name] = call.args as [string];
  const key = option(call, "key");
  const found = (await budgetsOf(server)).filter(
    (one) => (one.id === name || one.name === name) && (key === undefined || one.key === key),
  );
  if (found.length === 0) {
    const whose = key === undefined ? "" : ` of ${JSON.stringify(key)}`;
    throw new Failure(EXIT.notFound, `there is no budget ${JSON.stringify(name)}${whose}.`, {
      hint: "millrace budgets lists them",
    });
  }
  if (found.length > 1 && !hasSwitch(call, "all")) {
    throw new Failure(EXIT.usage, `there are ${found.length} budgets ${JSON.stringify(name)}.`, {
      hint: `say whose: --key ${JSON.stringify(found[0]!.key ?? "")}, or --all`,
    });
  }
  return found;
}

async function budgetsOf(server: Server): Promise<readonly ShownLimit[]> {
  const { items } = await server.list<ShownLimit>("/v1/limits", {}, Number.POSITIVE_INFINITY);
  return items.filter(({ kind }) => kind === "budget");
}
