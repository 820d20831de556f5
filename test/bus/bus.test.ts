import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, type ExpectStatic, test } from "vitest";
import { type Missing, startKafkaBroker } from "../../scripts/services/kafka.ts";
import { startRedis } from "../../scripts/services/redis.ts";
import type { MortalService, Service } from "../../scripts/services/service.ts";
import {
  cleanUp,
  folder,
  getJson,
  millrace,
  postJson,
  type Program,
  serve,
  type Serving,
  start,
} from "../cli/program.ts";
import { Stranger } from "./broker.ts";

/** `note` writes down that it was called, and waits if it is asked to. */
const HANDLERS = `import { appendFileSync } from "node:fs";
const note = async (config, { signal, idempotencyKey }) => {
  appendFileSync(process.env.NOTES, JSON.stringify([process.env.WHO, "begins", config.n, idempotencyKey]) + "\\n");
  signal.addEventListener("abort", () => {
    appendFileSync(process.env.NOTES, JSON.stringify([process.env.WHO, "stops", config.n]) + "\\n");
  });
  if (config.not === process.env.WHO) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  if (config.ms) await new Promise((resolve) => setTimeout(resolve, config.ms));
  return { n: config.n, who: process.env.WHO, text: "x".repeat(config.chars ?? 0) };
};
export const handlers = { note };
`;

interface Node {
  readonly status: string;
  readonly attempt: number;
  readonly deliveries: number;
  readonly output: { readonly n: number; readonly who: string } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

interface Shown {
  readonly status: string;
  readonly nodes: Readonly<Record<string, Node>>;
}

const definition = (name: string, config: object, more: object = {}): object => ({
  name,
  nodes: [{ id: "a", handler: "note", config, retry: { max_attempts: 1 }, ...more }],
});

let broker: MortalService | Missing;
let redis: Service;
beforeAll(async () => {
  [broker, redis] = await Promise.all([startKafkaBroker(), startRedis({ shared: false })]);
});
afterAll(async () => {
  cleanUp();
  await redis.stop();
  if ("stop" in broker) await broker.stop();
});

/** A part of the broker that no other test uses, and servers and workers on it. */
class World {
  readonly url: string;
  readonly prefix: string;
  readonly stranger: Stranger;
  readonly folder: string = folder({ "handlers.mjs": HANDLERS });
  readonly notes: string = join(this.folder, "notes");
  readonly store: string;

  constructor(number: number) {
    this.prefix = `world-${number}`;
    this.store = `${redis.url}/${number}`;
    if ("missing" in broker) throw new Error(broker.missing);
    this.url = `${broker.url}/${this.prefix}`;
    this.stranger = new Stranger(broker.url);
  }

  serve(env: Readonly<Record<string, string>> = {}): Promise<Serving> {
    const given = { MILLRACE_BUS: this.url, MILLRACE_BUS_QUEUES: "note", MILLRACE_BUS_PARTITIONS: "4", ...env };
    return serve(this.store, ["--roles", "api,engine"], { cwd: this.folder, env: given });
  }

  async worker(who: string, concurrency = 4): Promise<Program> {
    const args = ["worker", "--bus", this.url, "--handlers", "handlers.mjs", "--queues", "note"];
    const env = { WHO: who, NOTES: this.notes, MILLRACE_BUS_PARTITIONS: "4" };
    const program = start([...args, "--concurrency", String(concurrency)], { cwd: this.folder, env });
    await program.says(/"started"/);
    return program;
  }

  /** What handlers have written down, of all workers. */
  noted(what: "begins" | "stops"): readonly (readonly [who: string, what: string, n: number, key?: string])[] {
    if (!existsSync(this.notes)) return [];
    const lines = readFileSync(this.notes, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as [string, string, number]).filter((line) => line[1] === what);
  }

  topic(name: string): string {
    return `${this.prefix}.${name}`;
  }
}

let worlds = 0;

function testWithKafka(name: string, run: (world: World, expect: ExpectStatic) => Promise<void>): void {
  const number = worlds++;
  test.concurrent(name, { timeout: 240_000 }, async ({ skip, expect }) => {
    // Said with every test of it: nobody may believe that it was tried.
    if ("missing" in broker) return skip(broker.missing);
    const world = new World(number);
    try {
      await run(world, expect);
    } finally {
      await world.stranger.close();
    }
  });
}

const shown = ({ url }: Serving, id: string): Promise<Shown> => getJson(`${url}/v1/executions/${id}`);
const listed = async ({ url }: Serving, query = ""): Promise<readonly { execution_id: string; status: string }[]> =>
  (await getJson<{ items: { execution_id: string; status: string }[] }>(`${url}/v1/executions?limit=500${query}`))
    .items;

async function store(server: Serving, written: object): Promise<void> {
  await accepted(`${server.url}/v1/workflow`, written);
}

async function run(server: Serving, written: object): Promise<string> {
  return accepted(`${server.url}/v1/workflow?start=true`, written);
}

async function accepted(url: string, written: object): Promise<string> {
  const answer = await postJson<{ execution_id?: string }>(url, written);
  if (answer.execution_id === undefined) throw new Error(JSON.stringify(answer));
  return answer.execution_id;
}

describe.concurrent("starts from Kafka", () => {
  testWithKafka("are one execution each, though the server is killed while it takes them", async (world, expect) => {
    const inputs = Array.from({ length: 300 }, (_, n) => n);
    let server = await world.serve();
    const worker = await world.worker("w", 50);
    await store(server, definition("each", { n: "{{ input.n }}" }));
    const sending = world.stranger.send(
      world.topic("workflow.start"),
      inputs.map((n) => ({ workflow: "each", input_params: { n }, labels: { via: "kafka" } })),
    );
    // As soon as it has taken some.
    await expect.poll(async () => (await listed(server, "&label=via%3Dkafka")).length).toBeGreaterThan(0);
    await server.kill();
    await sending;
    server = await world.serve();
    const ended = async (): Promise<number> => (await listed(server, "&label=via%3Dkafka&status=COMPLETED")).length;
    await expect.poll(ended, { timeout: 120_000, interval: 200 }).toBe(inputs.length);
    expect(await listed(server, "&label=via%3Dkafka")).toHaveLength(inputs.length);
    worker.child.kill("SIGTERM");
    await server.stop();
  });

  testWithKafka("go on when their topic is removed and made anew", async (world, expect) => {
    const server = await world.serve();
    await store(server, definition("again", { n: 1 }));
    const topic = world.topic("workflow.start");
    const start = { workflow: "again", labels: { via: "kafka" } };
    await world.stranger.send(topic, [start]);
    await expect.poll(async () => (await listed(server, "&label=via%3Dkafka")).length).toBe(1);
    await world.stranger.removeTopic(topic);
    await world.stranger.makeTopic(topic, 10_000);
    // Its client remembers nothing of the old one. The message has the same place there, and is another.
    const stranger = new Stranger((broker as MortalService).url);
    await stranger.send(topic, [start]);
    await stranger.close();
    await expect.poll(async () => (await listed(server, "&label=via%3Dkafka")).length).toBe(2);
    await server.stop();
  });

  testWithKafka("with a key are one for all that have it", async (world, expect) => {
    const server = await world.serve();
    await store(server, definition("keyed", { n: "{{ input.n }}" }));
    const start = { workflow: "keyed", input_params: { n: 1 }, labels: { via: "kafka" }, idempotency_key: "once" };
    await world.stranger.send(world.topic("workflow.start"), [start, start, { ...start, input_params: { n: 2 } }]);
    const rejected = await world.stranger.read(world.topic("rejected"));
    await expect.poll(() => rejected.map((text) => (JSON.parse(text) as { code: string }).code)).toHaveLength(1);
    expect(rejected[0]).toContain("IDEMPOTENCY_KEY_REUSED");
    expect(await listed(server, "&label=via%3Dkafka")).toHaveLength(1);
    await server.stop();
  });

  testWithKafka(
    "that cannot be carried out are put aside with the reason, and the next ones go on",
    async (world, expect) => {
      const server = await world.serve({ MILLRACE_BUS_PARTITIONS: "1" });
      await store(server, definition("good", { n: 1 }));
      const deep = `${"[".repeat(2_000)}${"]".repeat(2_000)}`;
      const rubbish = [
        "rubbish",
        "",
        "[]",
        "{}",
        '{"workflow":"nobody"}',
        '{"workflow":"good","inputs":[1]}',
        '{"workflow":"good","workflow":"good"}',
        `{"workflow":"good","input_params":${deep}}`,
        `{"workflow":"good","input_params":"${"x".repeat(1_100_000)}"}`,
        '{"workflow":"good","labels":{"no name":"x"}}',
        '{"workflow":"good","version":99}',
        "\u{fffd}\u{0}",
      ];
      await world.stranger.send(world.topic("workflow.start"), [
        ...rubbish,
        { workflow: "good", labels: { via: "kafka" } },
      ]);
      await world.stranger.send(world.topic("task.complete"), [
        "rubbish",
        { token: "x", output: 1 },
        { tokens: ["x"] },
      ]);
      await expect.poll(async () => (await listed(server, "&label=via%3Dkafka")).length).toBe(1);
      const rejected = await world.stranger.read(world.topic("rejected"));
      const codes = (): string[] => rejected.map((text) => (JSON.parse(text) as { code: string }).code).toSorted();
      await expect.poll(codes).toHaveLength(rubbish.length + 3);
      expect(new Set(codes())).toEqual(
        new Set([
          "DUPLICATE_KEY",
          "INVALID_JSON",
          "INVALID_TYPE",
          "JSON_TOO_DEEP",
          "NOT_FOUND",
          "PAYLOAD_TOO_LARGE",
          "TASK_TOKEN_INVALID",
          "UNKNOWN_FIELD",
        ]),
      );
      const one = JSON.parse(rejected.find((text) => text.includes("nobody"))!) as Record<string, unknown>;
      expect(one).toMatchObject({ topic: world.topic("workflow.start"), partition: 0, value: '{"workflow":"nobody"}' });
      expect(one["message"]).toContain('"nobody"');
      await server.stop();
    },
  );
});

describe.concurrent("tasks over Kafka", () => {
  testWithKafka("are each begun once while workers come and go", async (world, expect) => {
    const server = await world.serve();
    const first = await world.worker("first");
    const count = 400;
    const items = Array.from({ length: count }, (_, n) => n);
    const id = await run(server, {
      name: "many",
      nodes: [
        {
          id: "m",
          handler: "map",
          config: { items, max_concurrency: 100, handler: "note", config: { n: "{{ item }}", ms: 20 } },
        },
      ],
    });
    await expect.poll(() => world.noted("begins").length).toBeGreaterThan(20);
    const second = await world.worker("second");
    await expect.poll(() => world.noted("begins").some(([who]) => who === "second")).toBe(true);
    first.child.kill("SIGTERM");
    expect((await first.ended).code).toBe(0);
    await expect.poll(async () => (await shown(server, id)).status, { timeout: 120_000 }).toBe("COMPLETED");
    const begun = world.noted("begins");
    expect(begun.map(([, , n]) => n).toSorted((a, b) => a - b)).toEqual(items);
    expect(new Set(begun.map(([who]) => who))).toEqual(new Set(["first", "second"]));
    second.child.kill("SIGTERM");
    expect((await second.ended).code).toBe(0);
    await server.stop();
  });

  testWithKafka("go to another worker when the one that has them is killed", async (world, expect) => {
    const server = await world.serve();
    const first = await world.worker("first");
    const id = await run(server, definition("long", { n: 1, not: "first" }));
    await expect.poll(() => world.noted("begins")).toHaveLength(1);
    await expect.poll(async () => (await shown(server, id)).nodes["a"]!.status).toBe("RUNNING");
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await world.worker("second");
    await expect.poll(async () => (await shown(server, id)).status, { timeout: 120_000 }).toBe("COMPLETED");
    const node = (await shown(server, id)).nodes["a"]!;
    expect(node).toMatchObject({ attempt: 1, deliveries: 2, output: { who: "second" } });
    // The same attempt has the same key, so that whoever is called can tell.
    const keys = world.noted("begins").map(([, , , key]) => key);
    expect(new Set(keys).size).toBe(1);
    expect((await millrace(["workers"], { env: { MILLRACE_URL: server.url } })).stdout).toContain("note");
    second.child.kill("SIGTERM");
    await server.stop();
  });

  testWithKafka("are asked to stop when their execution is cancelled", async (world, expect) => {
    const server = await world.serve();
    const worker = await world.worker("w");
    const id = await run(server, definition("cancelled", { n: 1, not: "w" }));
    await expect.poll(() => world.noted("begins")).toHaveLength(1);
    await postJson(`${server.url}/v1/executions/${id}/cancel`, {});
    await expect.poll(() => world.noted("stops"), { timeout: 60_000 }).toHaveLength(1);
    expect((await shown(server, id)).status).toBe("CANCELLED");
    worker.child.kill("SIGTERM");
    await server.stop();
  });

  testWithKafka("are taken and told of by programs that know nothing of Millrace", async (world, expect) => {
    const server = await world.serve();
    const id = await run(server, definition("foreign", { n: 21 }));
    const other = await run(server, definition("failing", { n: 22 }));
    const tasks = await world.stranger.read(world.topic("task.dispatch.note"));
    await expect.poll(() => tasks.length).toBe(2);
    for (const text of tasks) {
      const { token, config } = JSON.parse(text) as { token: string; config: { n: number } };
      const result =
        config.n === 21 ? { output: { n: 42 } } : { error: { code: "NO", message: "no", retryable: false } };
      // Twice, as may happen to anybody.
      for (let i = 0; i < 2; i++) await world.stranger.send(world.topic("task.complete"), [{ token, ...result }]);
    }
    await expect.poll(async () => (await shown(server, id)).status).toBe("COMPLETED");
    expect((await shown(server, id)).nodes["a"]!.output).toEqual({ n: 42 });
    await expect.poll(async () => (await shown(server, other)).status).toBe("FAILED");
    expect((await shown(server, other)).nodes["a"]!.error).toMatchObject({ code: "NO" });
    await server.stop();
  });

  testWithKafka(
    "wait in the store beyond the window, and a server that comes back does not send them again",
    async (world, expect) => {
      let server = await world.serve({ MILLRACE_BUS_WINDOW: "3" });
      for (let n = 0; n < 5; n++) await run(server, definition("windowed", { n }));
      const tasks = await world.stranger.read(world.topic("task.dispatch.note"));
      await expect.poll(() => tasks.length).toBe(3);
      await server.stop();
      server = await world.serve({ MILLRACE_BUS_WINDOW: "3" });
      const { token } = JSON.parse(tasks[0]!) as { token: string };
      await world.stranger.send(world.topic("task.complete"), [{ token, output: 1 }]);
      await expect.poll(async () => (await listed(server, "&status=COMPLETED")).length).toBe(1);
      await expect.poll(() => tasks.length).toBe(4);
      await server.stop();
    },
  );

  testWithKafka("with secrets are not sent", async (world, expect) => {
    const server = await world.serve({ MILLRACE_SECRET_PIN: "1234-5678" });
    const id = await run(server, definition("secret", { n: "{{ secrets.PIN }}" }));
    await expect.poll(async () => (await shown(server, id)).status).toBe("FAILED");
    expect((await shown(server, id)).nodes["a"]!.error).toMatchObject({
      code: "SECRET_NOT_SENT",
      message: expect.stringContaining("secrets.PIN") as string,
    });
    expect(await world.stranger.read(world.topic("task.dispatch.note"))).toEqual([]);
    await server.stop();
  });

  testWithKafka("fail if their topic does not take them, or their result", async (world, expect) => {
    await world.stranger.makeTopic(world.topic("task.dispatch.note"), 10_000);
    await world.stranger.makeTopic(world.topic("task.complete"), 10_000);
    const server = await world.serve();
    const worker = await world.worker("w");
    const large = await run(server, definition("large", { n: 1, text: "x".repeat(20_000) }));
    const wordy = await run(server, definition("wordy", { n: 2, chars: 20_000 }));
    const good = await run(server, definition("good", { n: 3 }));
    await expect.poll(async () => (await shown(server, good)).status).toBe("COMPLETED");
    await expect.poll(async () => (await shown(server, large)).status).toBe("FAILED");
    expect((await shown(server, large)).nodes["a"]!.error).toMatchObject({ code: "RESOLVED_INPUT_TOO_LARGE" });
    await expect.poll(async () => (await shown(server, wordy)).status).toBe("FAILED");
    expect((await shown(server, wordy)).nodes["a"]!.error).toMatchObject({ code: "OUTPUT_TOO_LARGE" });
    worker.child.kill("SIGTERM");
    await server.stop();
  });
});
