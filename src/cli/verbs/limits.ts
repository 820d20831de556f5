import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson, printTable } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { Listed } from "../shapes.ts";

interface ShownLimit {
  readonly name: string;
  readonly kind: string;
  readonly key?: string | null;
  readonly limit: number | null;
  readonly budget?: Readonly<Record<string, { limit: number | null; spent: number }>>;
  readonly window_seconds?: number;
  readonly burst?: number;
  readonly in_use?: number;
  readonly waiting?: number;
  readonly until?: string | null;
  readonly tripped?: boolean;
  readonly overridden?: boolean;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const [, action] = call.command.split(" ");
  const page =
    action === undefined || action === "ls"
      ? await server.get<Listed<ShownLimit>>("/v1/limits", { limit: "500" })
      : await server.post<Listed<ShownLimit>>(`/v1/limits/${segment(call.args[0]!)}/${action}`, {});
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("nothing is limited: no execution has met a limit yet\n");
  else {
    const rows = page.items.map((one) => [
      one.key === undefined || one.key === null ? one.name : `${one.name} ${one.key}`,
      one.kind,
      allowed(one) + (one.overridden === true ? " (overridden)" : ""),
      String(one.in_use ?? ""),
      String(one.waiting ?? ""),
      one.tripped === true ? "tripped" : one.until ? `closed until ${one.until}` : "open",
    ]);
    printTable(call, ["LIMIT", "KIND", "ALLOWS", "IN USE", "WAITING", "STATE"], rows);
  }
  return EXIT.done;
};

function allowed({ kind, limit, window_seconds: seconds, burst, budget }: ShownLimit): string {
  if (limit === null) {
    const used = Object.entries(budget ?? {}).filter(([, one]) => one.limit !== null);
    return used.map(([unit, one]) => `${rounded(one.spent)} of ${rounded(one.limit!)} ${unit} spent`).join(", ");
  }
  if (kind === "breaker") return `opens at ${Math.round(limit * 100)} % failures`;
  if (seconds === undefined) return `${limit} at a time`;
  const per = { 1: "second", 60: "minute", 3600: "hour" }[seconds] ?? `${seconds} s`;
  return `${limit}${kind === "tokens" ? " tokens" : ""} a ${per}${burst === undefined ? "" : `, ${burst} at once`}`;
}

function rounded(amount: number): string {
  return String(Math.round(amount * 10_000) / 10_000);
}
