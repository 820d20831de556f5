import { describe, expect, test } from "vitest";
import type { Join } from "../../definition/workflow.ts";
import { type JoinVerdict, joinRule } from "./joins.ts";

type Edge = "ok" | "void" | "bad";

const EDGES: readonly Edge[] = ["ok", "void", "bad"];

/** The table of joins in docs/workflows.md, for edges that are all decided. */
function whenAllDecided(join: Join, edges: readonly Edge[]): Exclude<JoinVerdict, "wait"> {
  const count = (edge: Edge): number => edges.filter((one) => one === edge).length;
  if (edges.length === 0 || join === "all_done") return "run";
  const needed = join === "one_success" ? 1 : join.startsWith("quorum:") ? Number(join.slice(7)) : undefined;
  if (needed !== undefined && count("ok") >= needed) return "run";
  if (count("bad") > 0) return "upstream_failed";
  if (join === "none_failed" && count("ok") > 0) return "run";
  if (join === "all_success" && count("ok") === edges.length) return "run";
  return "condition";
}

/** Every way in which the edges that are open may still be decided. */
function futures(edges: readonly Edge[], open: number): Edge[][] {
  if (open === 0) return [[...edges]];
  return EDGES.flatMap((edge) => futures([...edges, edge], open - 1));
}

/**
 * What may be said now. The rules that wait for all edges wait; the ones that do not run at the n-th ok, and skip once
 * no future runs. Why they skip is told by what is known then.
 */
function reading(join: Join, decided: readonly Edge[], open: number): JoinVerdict {
  if (open === 0) return whenAllDecided(join, decided);
  if (!join.startsWith("quorum:") && join !== "one_success") return "wait";
  const ends = futures(decided, open).map((edges) => whenAllDecided(join, edges));
  if (ends.every((end) => end === "run")) return "run";
  if (ends.includes("run")) return "wait";
  return decided.includes("bad") ? "upstream_failed" : "condition";
}

const JOINS: readonly Join[] = [
  "none_failed",
  "all_success",
  "all_done",
  "one_success",
  "quorum:1",
  "quorum:2",
  "quorum:3",
  "quorum:4",
];

describe.each(JOINS)("%s", (join) => {
  test("says what the contract says, for every number of edges of each kind", () => {
    for (let ok = 0; ok <= 4; ok++)
      for (let empty = 0; ok + empty <= 4; empty++)
        for (let bad = 0; ok + empty + bad <= 4; bad++)
          for (let undecided = 0; ok + empty + bad + undecided <= 5; undecided++) {
            const decided = [
              ...Array.from({ length: ok }, (): Edge => "ok"),
              ...Array.from({ length: empty }, (): Edge => "void"),
              ...Array.from({ length: bad }, (): Edge => "bad"),
            ];
            const counts = { ok, void: empty, bad, undecided };
            expect([counts, joinRule(join)(counts)]).toEqual([counts, reading(join, decided, undecided)]);
          }
  });
});

const cases: readonly (readonly [Join, { ok: number; void: number; bad: number; undecided: number }, JoinVerdict])[] = [
  ["none_failed", { ok: 0, void: 0, bad: 0, undecided: 0 }, "run"],
  ["none_failed", { ok: 1, void: 1, bad: 0, undecided: 0 }, "run"],
  ["none_failed", { ok: 0, void: 2, bad: 0, undecided: 0 }, "condition"],
  ["none_failed", { ok: 1, void: 0, bad: 1, undecided: 1 }, "wait"],
  ["none_failed", { ok: 1, void: 0, bad: 1, undecided: 0 }, "upstream_failed"],
  ["all_success", { ok: 1, void: 1, bad: 0, undecided: 0 }, "condition"],
  ["all_done", { ok: 0, void: 0, bad: 3, undecided: 0 }, "run"],
  ["one_success", { ok: 1, void: 0, bad: 0, undecided: 9 }, "run"],
  ["one_success", { ok: 0, void: 0, bad: 3, undecided: 0 }, "upstream_failed"],
  ["one_success", { ok: 0, void: 3, bad: 0, undecided: 0 }, "condition"],
  ["quorum:2", { ok: 1, void: 0, bad: 1, undecided: 1 }, "wait"],
  ["quorum:2", { ok: 1, void: 0, bad: 2, undecided: 0 }, "upstream_failed"],
  ["quorum:2", { ok: 0, void: 0, bad: 1, undecided: 1 }, "upstream_failed"],
  ["quorum:9", { ok: 0, void: 0, bad: 0, undecided: 0 }, "run"],
];

test.each(cases)("%s with %j says %s", (join, counts, verdict) => {
  expect(joinRule(join)(counts)).toBe(verdict);
});
