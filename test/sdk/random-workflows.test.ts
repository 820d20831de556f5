import { expect, test } from "vitest";
import { checkDefinition } from "../../src/definition/read.ts";
import { expr, HandlerError, type Handle, type Node, type Outcome, workflow } from "../../src/sdk/index.ts";
import { Random } from "../../src/simulator/random.ts";
import { testRun } from "../../src/testing/index.ts";

/**
 * What the types promise holds at run time: a value that cannot be missing is never missing, and every value is the one
 * that its node gave. Random workflows with every kind of dependency, join, condition and failure.
 */

/** A handle as the types see it. `lacks`: undefined is part of its type. */
interface Known {
  readonly name: string;
  readonly handle: Handle<unknown>;
  readonly lacks: boolean;
  readonly isConditional: boolean;
  /** What a dependant must be given, once the node has ended. */
  readonly expected: () => unknown;
}

type Fate = { readonly output: unknown } | { readonly error: string } | undefined;

const JOINS = ["none_failed", "all_success", "all_done", "one_success", "quorum:1"] as const;
/** Codes that say the builder wrote something that cannot be evaluated. */
const OUR_FAULT = /^(TEMPLATE_|CONDITION_|CONFIG_|EXPRESSION_|RESOLVED_|UNKNOWN_)/;

function isLacking(given: Known, join: string): boolean {
  if (join === "all_success") return isOptional(given);
  return join === "none_failed" ? given.lacks : true;
}

function mayBeSkipped(after: readonly Known[], join: string, hasWhen: boolean): boolean {
  if (hasWhen) return true;
  if (after.length === 0 || join === "all_done") return false;
  const skips = (known: Known): boolean => known.lacks && !isOptional(known);
  return join === "none_failed" || join === "one_success" ? after.every(skips) : after.some(skips);
}

function isOptional({ name }: Known): boolean {
  return name.endsWith("_optional");
}

function randomWorkflow(random: Random) {
  const wf = workflow("random", { onError: random.pick(["fail_fast", "fail_branch"] as const) });
  const fates = new Map<string, Fate>();
  const violations: string[] = [];
  const handles: Known[] = [];
  const plain: Known[] = [];
  const optionals = new Map<Known, Known>();
  /** What a failure that is caught may skip: it must not be part of the result as it is. */
  const parents = new Map<string, readonly string[]>();
  const caught = new Set<string>();
  const isExposed = (id: string): boolean => caught.has(id) || (parents.get(id) ?? []).some(isExposed);

  const check = (id: string, after: readonly Known[], join: string, given: Record<string, unknown>): void => {
    for (const known of after) {
      const value = given[known.name];
      const where = `${id} (${join}) given ${known.name} = ${JSON.stringify(value)}`;
      if (value === undefined && !isLacking(known, join)) violations.push(`${where}, which cannot be missing`);
      const expected = known.expected();
      const isRight = JSON.stringify(value) === JSON.stringify(expected);
      if (value !== undefined && !isRight) violations.push(`${where}, expected ${JSON.stringify(expected)}`);
    }
  };

  const keep = (id: string, node: Node<unknown>, lacks: boolean, goesOn: boolean): void => {
    const outcome = (): unknown => {
      const fate = fates.get(id);
      if (fate === undefined) return { status: "SKIPPED" };
      if ("output" in fate) return { status: "COMPLETED", output: fate.output };
      return { status: "FAILED", error: { code: fate.error, message: fate.error, retryable: false } };
    };
    const output = (): unknown => (goesOn ? outcome() : (fates.get(id) as { output?: unknown } | undefined)?.output);
    const failed = (): unknown => (outcome() as { error?: unknown }).error;
    const own = { name: id, handle: node, lacks, isConditional: false, expected: output };
    handles.push(own);
    plain.push(own);
    handles.push({ name: `${id}_failed`, handle: node.failed, lacks: true, isConditional: true, expected: failed });
    handles.push({ name: `${id}_done`, handle: node.done, lacks: false, isConditional: false, expected: outcome });
    const optional = (): unknown => (goesOn && fates.get(id) === undefined ? undefined : output());
    const any = {
      name: `${id}_optional`,
      handle: node.optional,
      lacks: true,
      isConditional: false,
      expected: optional,
    };
    handles.push(any);
    optionals.set(own, any);
  };

  const count = random.integer(2, 9);
  for (let i = 0; i < count; i++) {
    const id = `n${i}`;
    const chosen = new Set<Known>();
    for (let k = random.integer(0, 3); k > 0 && plain.length > 0; k--) {
      chosen.add(random.chance(0.75) ? random.pick(plain) : random.pick(handles));
    }
    const after = [...chosen];
    const asked = random.chance(0.4) && after.length > 0 ? random.pick(JOINS) : undefined;
    const join = asked ?? (after.some(({ isConditional }) => isConditional) ? "all_success" : "none_failed");
    for (const { name } of after) if (name.endsWith("_failed")) caught.add(name.replace("_failed", ""));
    const spreading = join === "all_done" ? [] : after.map(({ name }) => name).filter((name) => !name.includes("_"));
    parents.set(id, spreading);
    const verdict = random.chance(0.6);
    const run = (given: Record<string, unknown>): unknown => {
      check(id, after, join, given);
      const fate: Fate = random.chance(0.25)
        ? { error: `E${i}` }
        : { output: random.pick([null, i, { at: i }, [i], "x", false]) };
      fates.set(id, fate);
      if ("error" in fate) throw new HandlerError(fate.error, fate.error);
      return fate.output;
    };
    const when = random.weighted<"none" | "function" | "expression">([
      [4, "none"],
      [2, "function"],
      [1, "expression"],
    ]);
    const condition = (given: Record<string, unknown>): boolean => {
      check(`${id}#when`, after, join, given);
      return verdict;
    };
    const goesOn = random.chance(0.2);
    const options = {
      after: Object.fromEntries(after.map(({ name, handle }) => [name, handle])),
      retry: 1,
      ...(asked !== undefined && { join: asked }),
      ...(goesOn && { onError: "continue" as const }),
      ...(when === "function" && { when: condition }),
      ...(when === "expression" && { when: expr`${verdict} == true` }),
    };
    const node = wf.node(id, options as never, run as never) as unknown as Node<unknown>;
    keep(id, node, mayBeSkipped(after, join, when !== "none"), goesOn);
  }
  const results = plain
    .filter(() => random.chance(0.5))
    .map((known) => (isExposed(known.name) || random.chance(0.1) ? optionals.get(known)! : known));
  const built = wf.output(Object.fromEntries(results.map(({ name, handle }) => [name, handle])));
  return { built, results, violations, fates };
}

test.each(Array.from({ length: 10 }, (_, i) => i))("what the types promise holds at run time: %i", async (block) => {
  for (let seed = block * 40; seed < (block + 1) * 40; seed++) {
    const { built, results, violations } = randomWorkflow(new Random(seed));
    const { errors, warnings } = checkDefinition(built.toJSON(), {
      handlers: { get: () => ({ engine: false }), names: () => [], allowMissing: false },
    });
    expect({ seed, errors, warnings }).toEqual({ seed, errors: [], warnings: [] });

    await using t = await testRun(built, {}, { seed });
    const story = (): string => `seed ${seed}\n${JSON.stringify(built, null, 1)}\n${JSON.stringify(t.events, null, 1)}`;
    expect(violations, story()).toEqual([]);
    expect(["COMPLETED", "PARTIAL", "FAILED"], story()).toContain(t.status);
    for (const event of t.events) {
      const { code } = (event.data["error"] ?? {}) as { code?: string };
      expect(code ?? "", `${event.node_id}: ${story()}`).not.toMatch(OUR_FAULT);
    }
    if (t.status === "COMPLETED") expect(t.output, story()).toBeDefined();
    if (t.output === undefined) continue;
    for (const { name, lacks, expected } of results) {
      const value = (t.output as Record<string, unknown>)[name];
      const due = expected() as Outcome<unknown> | undefined;
      const isMissing = due === undefined || (due as { status?: string } | null)?.status === "SKIPPED";
      if (!lacks) expect(isMissing, `${name} cannot be missing in ${story()}`).toBe(false);
      expect(value, `${name} in ${story()}`).toEqual(isMissing ? null : due);
    }
  }
});
