import { join } from "node:path";
import type { Contender, Servers } from "../contender.ts";
import { peerModule } from "../peer-module.ts";
import type { Probe } from "../probe.ts";
import type { Output, Shape } from "../shapes.ts";
import { type Fsync, prepareRedis } from "./redis-server.ts";
import { startWorkerProcess } from "./worker-process.ts";

const QUEUE = "q";
export const CONCURRENCY = 100;
const WORKER = join(import.meta.dirname, "bullmq-worker.ts");

interface Connection {
  readonly host: string;
  readonly port: number;
}

interface Job {
  readonly data: { readonly node: string; readonly given?: readonly Output[]; readonly rest?: FlowJob };
  getChildrenValues(): Promise<Readonly<Record<string, Output>>>;
  waitUntilFinished(events: unknown): Promise<unknown>;
}

interface FlowJob {
  readonly name: string;
  readonly queueName: string;
  readonly data: Job["data"];
  readonly children?: readonly FlowJob[];
}

/** The part of BullMQ that is called here. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: { readonly connection: Connection },
  ) => { addBulk(jobs: readonly FlowJob[]): Promise<readonly Job[]>; close(): Promise<void> };
  readonly FlowProducer: new (options: { readonly connection: Connection }) => {
    add(flow: FlowJob): Promise<{ readonly job: Job }>;
    addBulk(flows: readonly FlowJob[]): Promise<readonly { readonly job: Job }[]>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    run: (job: Job) => Promise<Output>,
    options: { readonly connection: Connection; readonly concurrency: number },
  ) => { on(event: "error", heard: (error: Error) => void): void; close(): Promise<void> };
  readonly QueueEvents: new (
    name: string,
    options: { readonly connection: Connection },
  ) => { waitUntilReady(): Promise<unknown>; close(): Promise<void> };
}

/** A flow is a tree: chains are one, and a graph with one beginning and one end is one once its beginning has run. */
export function runsOnBullMq(shape: Shape): boolean {
  return (
    isChain(shape) || shape.nodes.every(({ id, after }, i) => isEnd(shape, id) || after.length === (i === 0 ? 0 : 1))
  );
}

function isChain({ nodes }: Shape): boolean {
  return nodes.every(({ after }, i) => (i === 0 ? after.length === 0 : after[0] === nodes[i - 1]!.id));
}

function isEnd({ nodes }: Shape, id: string): boolean {
  return nodes.at(-1)!.id === id;
}

/** The jobs of one execution: the first of a graph carries the flow of the rest, which its handler adds. */
function flowOf(shape: Shape): FlowJob {
  const { nodes } = shape;
  const job = (node: string, children: readonly FlowJob[]): FlowJob => ({
    name: node,
    queueName: QUEUE,
    data: { node },
    ...(children.length > 0 && { children }),
  });
  if (isChain(shape)) {
    return nodes.slice(1).reduce((before, { id }) => job(id, [before]), job(nodes[0]!.id, []));
  }
  const middle = nodes.slice(1, -1).map(({ id }) => job(id, []));
  return { name: nodes[0]!.id, queueName: QUEUE, data: { node: nodes[0]!.id, rest: job(nodes.at(-1)!.id, middle) } };
}

function connectionOf(url: string): Connection {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Runs the jobs. Gives what stops it. */
export async function startBullMqWorker(probe: Probe, url: string): Promise<() => Promise<void>> {
  const { FlowProducer, Worker } = await peerModule<BullMq>("bullmq");
  const connection = connectionOf(url);
  const flows = new FlowProducer({ connection });
  const isFirst = (node: string): boolean => probe.shape.nodes[0]!.id === node;
  const worker = new Worker(
    QUEUE,
    async (job) => {
      const { node, given, rest } = job.data;
      const inputs = given ?? (isFirst(node) ? [] : Object.values(await job.getChildrenValues()));
      const output = await probe.step(node, inputs);
      if (rest !== undefined) {
        const children = rest.children!.map((child) => ({ ...child, data: { ...child.data, given: [output] } }));
        await flows.add({ ...rest, children });
      }
      return output;
    },
    { connection, concurrency: CONCURRENCY },
  );
  worker.on("error", (error) => console.error(error.message));
  return async () => {
    await worker.close();
    await flows.close();
  };
}

export interface BullMqOptions {
  readonly fsync: Fsync;
  readonly workers: "inside" | "apart";
}

export async function startBullMq(probe: Probe, { redis }: Servers, options: BullMqOptions): Promise<Contender> {
  const pid = await prepareRedis(redis, options.fsync);
  const { FlowProducer, Queue, QueueEvents } = await peerModule<BullMq>("bullmq");
  const connection = connectionOf(redis);
  const { shape } = probe;
  const queue = new Queue(QUEUE, { connection });
  const flows = new FlowProducer({ connection });
  const events = new QueueEvents(QUEUE, { connection });
  await events.waitUntilReady();
  const worker =
    options.workers === "inside"
      ? await startBullMqWorker(probe, redis)
      : await startWorkerProcess(probe, WORKER, { url: redis });
  return {
    servers: { redis: pid },
    submit: async (count) => {
      const all = Array.from({ length: count }, () => flowOf(shape));
      if (isChain(shape)) await flows.addBulk(all);
      else await queue.addBulk(all);
    },
    // A chain is over when its top job is; of any other graph the last node's handler is the news there is.
    runOne: async () => {
      const before = probe.executions;
      if (isChain(shape)) await (await flows.add(flowOf(shape))).job.waitUntilFinished(events);
      else await queue.addBulk([flowOf(shape)]);
      await probe.until(before + 1);
    },
    settled: async () => {},
    close: async () => {
      await worker();
      await Promise.all([queue.close(), flows.close(), events.close()]);
    },
  };
}
