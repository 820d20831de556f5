import type { Json, JsonObject } from "../../src/json/json.ts";
import type { Random } from "../../src/simulator/random.ts";
import type { Run } from "./run.ts";

/** A workflow that people run in a world of kills, and what must come of it whatever happens. */
export interface Kind {
  readonly definition: JsonObject & { readonly name: string };
  /** Accepted first, and triggered later. */
  readonly isHeld?: boolean;
  /** Its handler is elsewhere, and may not be known when it is started. */
  readonly isRemote?: boolean;
  input(random: Random): JsonObject;
  /** What people do besides starting it. */
  drive?(run: Run): Promise<void>;
  /** Made without the engine. */
  expected(input: JsonObject): Expected;
}

export interface Expected {
  readonly status: string;
  readonly output: Json;
  /** The keys under which its handlers act on the world outside, without the execution; undefined if that varies. */
  readonly keys?: readonly string[];
  /** How many attempts a node takes, besides those that a deadline ended while nobody was there. */
  readonly attempts?: Readonly<Record<string, number>>;
}

const quick = { max_attempts: 6, base_delay_seconds: 0.02, max_delay_seconds: 0.1, exponential_base: 2, jitter: 0 };

const add = (id: string, a: string, b: number, dependencies: readonly string[] = []): JsonObject => ({
  id,
  handler: "add",
  config: { a, b },
  dependencies,
});

function n(input: JsonObject): number {
  return Number(input["n"]);
}

function items(input: JsonObject): readonly number[] {
  return input["items"] as readonly number[];
}

function drawNumber(random: Random): JsonObject {
  return { n: random.integer(0, 1_000) };
}

function drawItems(random: Random): JsonObject {
  return { items: Array.from({ length: random.integer(0, 6) }, () => random.integer(0, 100)) };
}

const CHAIN = [add("a", "{{ input.n }}", 1), add("b", "{{ a.sum }}", 10, ["a"]), add("c", "{{ b.sum }}", 100, ["b"])];
const CHAIN_KEYS = ["a/1", "b/1", "c/1"];
const FAN = [0, 1, 2, 3, 4].map((i) => `f${i}`);
const LARGE = 80_000;
/** A breaker that is asked and told, and does not open: half a minute is more than a world lives. */
const NEVER = { failure_rate: 1, min_calls: 1_000, window: 1_000 };
/** Longer than clocks are set forward while people are at work, as what is too old is removed; and over when all is. */
const HALF_DAY_S = 43_200;

/** Workflows that others call. */
export const CALLED: readonly Kind[] = [
  {
    definition: {
      name: "called",
      nodes: [
        { id: "first", handler: "flaky", config: { value: "{{ input.n }}", failures: 1 }, retry: quick },
        add("second", "{{ first.value }}", 5, ["first"]),
        { id: "out", handler: "output", dependencies: ["second"], config: { sum: "{{ second.sum }}" } },
      ],
    },
    input: drawNumber,
    expected: (input) => ({
      status: "COMPLETED",
      output: { sum: n(input) + 5 },
      keys: ["first/1", "second/1"],
      attempts: { first: 2 },
    }),
  },
  {
    definition: { name: "called in vain", nodes: [{ id: "never", handler: "wait", config: { signal: "never" } }] },
    input: drawNumber,
    expected: () => ({ status: "CANCELLED", output: null, keys: [] }),
  },
];

export const KINDS: readonly Kind[] = [
  {
    definition: { name: "chain", nodes: CHAIN },
    input: drawNumber,
    expected: (input) => ({ status: "COMPLETED", output: { c: { sum: n(input) + 111 } }, keys: CHAIN_KEYS }),
  },
  {
    definition: {
      name: "fan",
      nodes: [
        { id: "root", handler: "double", config: { value: "{{ input.n }}" } },
        ...FAN.map((id, i) => add(id, "{{ root.value }}", i, ["root"])),
        { id: "all", handler: "total", dependencies: FAN, config: { values: FAN.map((id) => `{{ ${id}.sum }}`) } },
      ],
    },
    input: drawNumber,
    expected: (input) => ({
      status: "COMPLETED",
      output: { all: { total: 10 * n(input) + 10 } },
      keys: ["root/1", ...FAN.map((id) => `${id}/1`), "all/1"],
    }),
  },
  {
    definition: {
      name: "map",
      nodes: [
        {
          id: "m",
          handler: "map",
          config: {
            items: "{{ input.items }}",
            handler: "double",
            config: { value: "{{ item }}" },
            max_concurrency: 2,
          },
        },
      ],
    },
    input: drawItems,
    expected: (input) => ({
      status: "COMPLETED",
      output: { m: items(input).map((item) => ({ value: item * 2 })) },
      keys: items(input).map((_, i) => `m[${i}]/1`),
    }),
  },
  {
    definition: {
      name: "graph for each",
      nodes: [
        {
          id: "m",
          handler: "map",
          config: {
            items: "{{ input.items }}",
            max_concurrency: 3,
            nodes: [
              add("x", "{{ item }}", 1),
              { id: "y", handler: "double", dependencies: ["x"], config: { value: "{{ x.sum }}" } },
              { id: "out", handler: "output", dependencies: ["y"], config: { value: "{{ y.value }}" } },
            ],
          },
        },
      ],
    },
    input: drawItems,
    expected: (input) => ({
      status: "COMPLETED",
      output: { m: items(input).map((item) => ({ value: (item + 1) * 2 })) },
      keys: [],
    }),
  },
  {
    definition: {
      name: "repeat",
      nodes: [
        {
          id: "poll",
          handler: "round",
          config: {},
          repeat: { until: "poll.round >= 3.0", every_seconds: 0.03, max: 10 },
        },
      ],
    },
    input: drawNumber,
    expected: () => ({
      status: "COMPLETED",
      output: { poll: { round: 3 } },
      keys: ["poll@1/1", "poll@2/1", "poll@3/1"],
    }),
  },
  {
    definition: {
      name: "family",
      nodes: [
        { id: "call", handler: "workflow", config: { name: "called", input: { n: "{{ input.n }}" } } },
        add("after", "{{ call.sum }}", 1_000, ["call"]),
      ],
    },
    input: drawNumber,
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: n(input) + 1_005 } }, keys: ["after/1"] }),
  },
  {
    definition: {
      name: "waits",
      nodes: [
        { id: "pause", handler: "wait", config: { seconds: 0.1 } },
        { id: "go", handler: "wait", dependencies: ["pause"], config: { signal: "go" } },
        add("after", "{{ go.value }}", 1, ["go"]),
      ],
    },
    input: drawNumber,
    drive: (run) => run.signal("go", { value: n(run.input) }),
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: n(input) + 1 } }, keys: ["after/1"] }),
  },
  {
    definition: {
      name: "flaky",
      nodes: [{ id: "f", handler: "flaky", config: { value: "{{ input.n }}", failures: 2 }, retry: quick }],
    },
    input: drawNumber,
    expected: (input) => ({
      status: "COMPLETED",
      output: { f: { value: n(input) } },
      keys: ["f/1"],
      attempts: { f: 3 },
    }),
  },
  {
    definition: {
      name: "review",
      nodes: [
        { id: "ask", handler: "review", config: { title: "{{ input.n }}?" } },
        add("after", "{{ ask.data.amount }}", 1, ["ask"]),
      ],
    },
    input: drawNumber,
    drive: (run) => run.approve("ask", { amount: n(run.input) }),
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: n(input) + 1 } }, keys: ["after/1"] }),
  },
  {
    definition: {
      name: "large",
      nodes: [
        { id: "big", handler: "large", config: { letter: "{{ input.letter }}", count: LARGE } },
        { id: "size", handler: "measure", dependencies: ["big"], config: { text: "{{ big.text }}" } },
        { id: "padding", handler: "measure", config: { text: "{{ input.padding }}" } },
      ],
    },
    input: (random) => ({ letter: random.pick(["x", "y", "z"]), padding: "p".repeat(70_000 + random.integer(0, 9)) }),
    expected: ({ letter, padding }) => ({
      status: "COMPLETED",
      output: { size: { first: letter!, length: LARGE }, padding: { first: "p", length: (padding as string).length } },
      keys: ["big/1", "size/1", "padding/1"],
    }),
  },
  {
    definition: {
      name: "mended",
      nodes: [
        { id: "m", handler: "mended", config: { value: "{{ input.n }}" } },
        add("after", "{{ m.value }}", 1, ["m"]),
      ],
    },
    input: drawNumber,
    drive: (run) => run.mend("m", n(run.input) % 2 === 0 ? "retry" : "dead letter"),
    expected: (input) => ({
      status: "COMPLETED",
      output: { after: { sum: n(input) + 1 } },
      keys: ["m/2", "after/1"],
    }),
  },
  {
    definition: {
      name: "cancelled",
      nodes: [
        add("a", "{{ input.n }}", 1),
        { id: "call", handler: "workflow", dependencies: ["a"], config: { name: "called in vain", input: {} } },
      ],
    },
    input: drawNumber,
    drive: (run) => run.cancel(),
    expected: () => ({ status: "CANCELLED", output: null }),
  },
  {
    definition: { name: "held", nodes: CHAIN },
    isHeld: true,
    input: drawNumber,
    drive: (run) => run.triggerAndPause(),
    expected: (input) => ({ status: "COMPLETED", output: { c: { sum: n(input) + 111 } }, keys: CHAIN_KEYS }),
  },
  {
    definition: {
      name: "remote",
      nodes: [
        { id: "far", handler: "far", config: { value: "{{ input.n }}", failures: 1 }, retry: quick },
        add("after", "{{ far.value }}", 1, ["far"]),
      ],
    },
    isRemote: true,
    input: drawNumber,
    expected: (input) => ({
      status: "COMPLETED",
      output: { after: { sum: n(input) + 1 } },
      keys: ["far/1", "after/1"],
      attempts: { far: 2 },
    }),
  },
  {
    definition: {
      name: "limited",
      limits: { few: { concurrency: 2, rate: 200, per: "second", burst: 20, breaker: NEVER } },
      budget: { calls: 1_000 },
      nodes: [
        { id: "f", handler: "flaky", limit: "few", config: { value: "{{ input.n }}", failures: 1 }, retry: quick },
        { ...add("b", "{{ f.value }}", 1, ["f"]), limit: "few" },
        { ...add("c", "{{ f.value }}", 2, ["f"]), concurrency: { key: "{{ input.n }}", limit: 1 } },
        {
          id: "out",
          handler: "output",
          dependencies: ["b", "c"],
          config: { b: "{{ b.sum }}", c: "{{ c.sum }}" },
        },
      ],
    },
    input: drawNumber,
    expected: (input) => ({
      status: "COMPLETED",
      output: { b: n(input) + 1, c: n(input) + 2 },
      keys: ["f/1", "b/1", "c/1"],
      attempts: { f: 2 },
    }),
  },
  {
    definition: {
      name: "cached",
      nodes: [
        { id: "c", handler: "double", config: { value: "{{ input.n }}" }, cache: { ttl: HALF_DAY_S } },
        add("after", "{{ c.value }}", 1, ["c"]),
      ],
    },
    // Few enough that most find what somebody has brought.
    input: (random) => ({ n: random.integer(0, 5) }),
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: 2 * n(input) + 1 } } }),
  },
  {
    definition: {
      name: "slow",
      nodes: [
        { id: "s", handler: "slow", config: { value: "{{ input.n }}", ms: 1_200 } },
        add("after", "{{ s.value }}", 1, ["s"]),
      ],
    },
    input: drawNumber,
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: n(input) + 1 } }, keys: ["s/1", "after/1"] }),
  },
  {
    definition: {
      name: "stuck",
      nodes: [
        // On a busy machine more attempts than the first may take too long.
        {
          id: "s",
          handler: "stuck",
          config: { value: "{{ input.n }}" },
          timeout_seconds: 0.7,
          retry: { ...quick, max_attempts: 30 },
        },
        add("after", "{{ s.value }}", 1, ["s"]),
      ],
    },
    input: drawNumber,
    expected: (input) => ({ status: "COMPLETED", output: { after: { sum: n(input) + 1 } }, keys: ["s/1", "after/1"] }),
  },
];

/** Take their time: not everybody runs one in every life of the process. */
export const SLOW_KINDS: ReadonlySet<string> = new Set(["slow", "stuck"]);
