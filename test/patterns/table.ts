/**
 * The 43 control-flow patterns of van der Aalst, ter Hofstede, Kiepuszewski and Barros, as revised by Russell, ter
 * Hofstede, van der Aalst and Mulyar (2006), and what Millrace makes of each. docs/patterns.md is written from this
 * table, and patterns.test.ts has one test for each that is not `no`.
 */
export interface Pattern {
  readonly number: number;
  readonly name: string;
  readonly group: Group;
  readonly support: "yes" | "partly" | "no";
  /** How it is written; of what cannot be written, why not and what comes closest. */
  readonly how: string;
}

export type Group =
  | "Basic control flow"
  | "Branching and synchronization"
  | "Multiple instances"
  | "State-based"
  | "Cancellation and force completion"
  | "Iteration"
  | "Termination"
  | "Triggers";

const basic = "Basic control flow";
const branching = "Branching and synchronization";
const instances = "Multiple instances";
const state = "State-based";
const cancellation = "Cancellation and force completion";

export const PATTERNS: readonly Pattern[] = [
  { number: 1, name: "Sequence", group: basic, support: "yes", how: "`dependencies: [a]`." },
  { number: 2, name: "Parallel Split", group: basic, support: "yes", how: "Several nodes depend on the same one." },
  {
    number: 3,
    name: "Synchronization",
    group: basic,
    support: "yes",
    how: "A node depends on several: it runs once all have ended.",
  },
  { number: 4, name: "Exclusive Choice", group: basic, support: "yes", how: "`router` with `mode: exclusive`." },
  {
    number: 5,
    name: "Simple Merge",
    group: basic,
    support: "yes",
    how: "A node depends on all branches; those that were not chosen are void and hold nobody up.",
  },
  { number: 6, name: "Multi-Choice", group: branching, support: "yes", how: "`router` with `mode: inclusive`." },
  {
    number: 7,
    name: "Structured Synchronizing Merge",
    group: branching,
    support: "yes",
    how: "The default join `none_failed`: it waits for exactly the branches that were chosen.",
  },
  {
    number: 8,
    name: "Multi-Merge",
    group: branching,
    support: "no",
    how:
      "A node runs once in a generation, so it cannot run once for each branch that arrives. Put what follows into a " +
      "workflow and call it from each branch, or run the branches as items of a `map` with `nodes`.",
  },
  {
    number: 9,
    name: "Structured Discriminator",
    group: branching,
    support: "yes",
    how: "`join: one_success`: it runs after the first, the others go on and are ignored.",
  },
  {
    number: 28,
    name: "Blocking Discriminator",
    group: branching,
    support: "partly",
    how:
      "`join: one_success`. A branch arrives once in a generation, so a second activation that would have to be held " +
      "back never comes; a new generation resets the join.",
  },
  {
    number: 29,
    name: "Cancelling Discriminator",
    group: branching,
    support: "yes",
    how: "The branches are a workflow of their own that ends with `end` and `join: one_success`: what is left is cancelled.",
  },
  { number: 30, name: "Structured Partial Join", group: branching, support: "yes", how: "`join: quorum:n`." },
  {
    number: 31,
    name: "Blocking Partial Join",
    group: branching,
    support: "partly",
    how: "`join: quorum:n`, as with the blocking discriminator.",
  },
  {
    number: 32,
    name: "Cancelling Partial Join",
    group: branching,
    support: "yes",
    how: "A workflow of its own that ends with `end` and `join: quorum:n`.",
  },
  {
    number: 33,
    name: "Generalized AND-Join",
    group: branching,
    support: "partly",
    how:
      "Joins need no matching split, and each fires once. What may come several times before it is needed is a signal: " +
      "those are kept for the joins to come, oldest first.",
  },
  {
    number: 37,
    name: "Local Synchronizing Merge",
    group: branching,
    support: "yes",
    how: "`none_failed` asks only the edges into the node, each of which is decided sooner or later: ok, void or bad.",
  },
  {
    number: 38,
    name: "General Synchronizing Merge",
    group: branching,
    support: "yes",
    how: "The same: without circles nothing can arrive any more once every edge is decided, in whatever graph.",
  },
  {
    number: 41,
    name: "Thread Merge",
    group: branching,
    support: "yes",
    how: "A `map` brings its items together: what follows runs once, with the list of their results.",
  },
  {
    number: 42,
    name: "Thread Split",
    group: branching,
    support: "yes",
    how: "A `map` with `nodes` runs the same branch as often as there are items.",
  },
  {
    number: 12,
    name: "Multiple Instances without Synchronization",
    group: instances,
    support: "yes",
    how: "A `map` on which nothing depends: the rest does not wait for it. (The execution ends after it.)",
  },
  {
    number: 13,
    name: "Multiple Instances with a priori Design-Time Knowledge",
    group: instances,
    support: "yes",
    how: "`map` over a list that stands in the definition.",
  },
  {
    number: 14,
    name: "Multiple Instances with a priori Run-Time Knowledge",
    group: instances,
    support: "yes",
    how: "`map` over a list that a node before it has made.",
  },
  {
    number: 15,
    name: "Multiple Instances without a priori Run-Time Knowledge",
    group: instances,
    support: "no",
    how:
      "The items of a `map` are fixed when it opens, so that its output has a length and a retry knows what is left. A " +
      "workflow that calls itself for the next one comes close, up to 16 deep; beyond that, start executions.",
  },
  {
    number: 34,
    name: "Static Partial Join for Multiple Instances",
    group: instances,
    support: "partly",
    how: "For instances that stand in the definition as nodes: `join: quorum:n`. A `map` waits for all its items.",
  },
  {
    number: 35,
    name: "Cancelling Partial Join for Multiple Instances",
    group: instances,
    support: "partly",
    how: "The same in a workflow of its own, with `end`. Not for the items of a `map`.",
  },
  {
    number: 36,
    name: "Dynamic Partial Join for Multiple Instances",
    group: instances,
    support: "no",
    how: "Needs instances that are added while others run; see 15.",
  },
  {
    number: 16,
    name: "Deferred Choice",
    group: state,
    support: "yes",
    how:
      "Several `wait` nodes and an `end` with `join: one_success` in a workflow of their own: what comes first decides, " +
      "the other waits are withdrawn. Signal or timer: `wait` with `timeout_seconds` and a dependant `on: failed`.",
  },
  {
    number: 17,
    name: "Interleaved Parallel Routing",
    group: state,
    support: "yes",
    how: "`max_parallel_nodes: 1`, with dependencies for the order that matters.",
  },
  {
    number: 18,
    name: "Milestone",
    group: state,
    support: "partly",
    how:
      "Whether a state was reached before it passed: a node on both with `join: one_success` and a condition that the " +
      "second has not ended. It is asked once, not for as long as the state lasts.",
  },
  {
    number: 39,
    name: "Critical Section",
    group: state,
    support: "yes",
    how: "The sections are workflows, called one at a time by a `map` with `max_concurrency: 1`.",
  },
  {
    number: 40,
    name: "Interleaved Routing",
    group: state,
    support: "yes",
    how: "`max_parallel_nodes: 1`, without dependencies between the nodes.",
  },
  {
    number: 19,
    name: "Cancel Task",
    group: cancellation,
    support: "yes",
    how: "The task is a workflow of its own; cancelling that execution fails its node, which a dependant `on: failed` catches.",
  },
  { number: 20, name: "Cancel Case", group: cancellation, support: "yes", how: "`cancel` of the execution." },
  {
    number: 25,
    name: "Cancel Region",
    group: cancellation,
    support: "yes",
    how: "The region is a workflow of its own, ended from inside by `end` or from outside by `cancel`.",
  },
  {
    number: 26,
    name: "Cancel Multiple Instance Task",
    group: cancellation,
    support: "yes",
    how: "The `map` stands in a workflow of its own that is cancelled: its items are withdrawn, the rest goes on.",
  },
  {
    number: 27,
    name: "Complete Multiple Instance Task",
    group: cancellation,
    support: "partly",
    how:
      "The `map` stands in a workflow of its own that an `end` completes. What follows runs as if all had been done, but " +
      "has not the results of the items that were.",
  },
  {
    number: 10,
    name: "Arbitrary Cycles",
    group: "Iteration",
    support: "no",
    how: "A graph has no circles (`CYCLE_DETECTED`): only so can it be checked before it runs. Use `repeat` or recursion.",
  },
  {
    number: 21,
    name: "Structured Loop",
    group: "Iteration",
    support: "yes",
    how: "`repeat: {until, every_seconds, max}`.",
  },
  {
    number: 22,
    name: "Recursion",
    group: "Iteration",
    support: "yes",
    how: "A `workflow` node may name the workflow it stands in, up to 16 deep.",
  },
  {
    number: 11,
    name: "Implicit Termination",
    group: "Termination",
    support: "yes",
    how: "An execution ends when nothing is left to do.",
  },
  {
    number: 43,
    name: "Explicit Termination",
    group: "Termination",
    support: "yes",
    how: "`end`: what is still open is cancelled.",
  },
  {
    number: 23,
    name: "Transient Trigger",
    group: "Triggers",
    support: "yes",
    how: "A `review`: a decision that comes when nobody waits for it is refused, and is not kept.",
  },
  {
    number: 24,
    name: "Persistent Trigger",
    group: "Triggers",
    support: "yes",
    how: "A signal: it is kept until a `wait` takes it.",
  },
];

export function titleOf({ number, name }: Pattern): string {
  return `WCP-${number} ${name}`;
}

/** docs/patterns.md. */
export function patternsPage(): string {
  const groups = [...new Set(PATTERNS.map(({ group }) => group))];
  const count = (support: Pattern["support"]): number => PATTERNS.filter((one) => one.support === support).length;
  return `# Workflow patterns

The ${PATTERNS.length} control-flow patterns of van der Aalst and others (Russell, ter Hofstede, van der Aalst, Mulyar: *Workflow
Control-Flow Patterns, A Revised View*, 2006). Supported: ${count("yes")}; partly: ${count("partly")}; not: ${count("no")}. Each that is not "no" has a test of its name in
\`test/patterns/patterns.test.ts\`, which runs a definition as it is written here on the real engine.

Written from \`test/patterns/table.ts\` by \`npx node test/patterns/write.ts\`; a test compares. What joins, routers,
maps and the rest are and how they are written: [workflows.md](workflows.md).

${groups.map(section).join("\n")}`;
}

function section(group: Group): string {
  const rows = PATTERNS.filter((pattern) => pattern.group === group);
  const lines = rows.map(({ number, name, support, how, ...rest }) => {
    const test = support === "no" ? "—" : `\`${titleOf({ number, name, support, how, ...rest })}\``;
    return `| ${number} | ${name} | ${support} | ${how.replaceAll("|", "\\|")} | ${test} |`;
  });
  return `## ${group}

| WCP | Pattern | Supported | How, or why not | Test |
|---|---|---|---|---|
${lines.join("\n")}
`;
}
