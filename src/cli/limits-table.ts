import type { Call } from "./call.ts";
import { printTable } from "./print.ts";

export interface ShownLimit {
  /** What is limited at the API itself has none. */
  readonly id?: string;
  readonly name: string;
  readonly kind: string;
  readonly key?: string | null;
  readonly limit: number | null;
  readonly budget?: Readonly<Record<string, { limit: number | null; spent: number; reserved: number }>>;
  readonly window_seconds?: number;
  readonly burst?: number;
  readonly in_use?: number;
  readonly waiting?: number;
  readonly until?: string | null;
  readonly tripped?: boolean;
  readonly overridden?: boolean;
}

export function printLimits(call: Call, limits: readonly ShownLimit[]): void {
  const rows = limits.map((one) => [
    one.key === undefined || one.key === null ? one.name : `${one.name} ${one.key}`,
    one.kind,
    allowed(one) + (one.overridden === true ? " (overridden)" : ""),
    String(one.in_use ?? ""),
    String(one.waiting ?? ""),
    one.tripped === true ? "tripped" : one.until ? `closed until ${one.until}` : "open",
  ]);
  printTable(call, ["LIMIT", "KIND", "ALLOWS", "IN USE", "WAITING", "STATE"], rows);
}

/** One line for each unit that a budget counts. */
export function printBudgets(call: Call, budgets: readonly ShownLimit[]): void {
  const rows = budgets.flatMap(({ name, key, budget = {}, waiting }) =>
    Object.entries(budget)
      .filter(([, { limit }]) => limit !== null)
      .map(([unit, { limit, spent, reserved }]) => [
        name,
        key ?? "",
        unit,
        rounded(limit!),
        rounded(spent),
        rounded(reserved),
        String(waiting ?? ""),
      ]),
  );
  printTable(call, ["BUDGET", "KEY", "UNIT", "ALLOWS", "SPENT", "RESERVED", "WAITING"], rows);
}

function allowed({ kind, limit, window_seconds: seconds, burst, budget }: ShownLimit): string {
  if (limit === null) {
    const used = Object.entries(budget ?? {}).filter(([, one]) => one.limit !== null);
    return used.map(([unit, one]) => `${rounded(one.spent)} of ${rounded(one.limit!)} ${unit} spent`).join(", ");
  }
  if (kind === "breaker") return `stops at ${Math.round(limit * 100)} % failures`;
  if (seconds === undefined) return `${limit} at a time`;
  const per = { 1: "second", 60: "minute", 3600: "hour" }[seconds] ?? `${seconds} s`;
  return `${limit}${kind === "tokens" ? " tokens" : ""} a ${per}${burst === undefined ? "" : `, ${burst} at once`}`;
}

function rounded(amount: number): string {
  return String(Math.round(amount * 10_000) / 10_000);
}
