import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../src/json/json.ts";
import type { Random } from "../../src/simulator/random.ts";
import type { Answer, Client } from "../world/client.ts";
import type { LedgerLine, Told } from "../world/notes.ts";
import { dispatchName } from "../world/sealed-token.ts";

/** A task as the gateway hands it out. */
interface Task {
  readonly token: string;
  readonly execution_id: string;
  readonly node_id: string;
  readonly attempt: number;
  readonly config: { readonly value: number; readonly failures: number };
  readonly idempotency_key: string;
}

const NAME = "gateway-far";
const LONGEST_MS = 400;
const POLL_MS = 200;

/**
 * A worker elsewhere, over HTTP. It outlives the process it works for: what it was given by one it settles with the next.
 */
export class RemoteWorker {
  readonly ledger: LedgerLine[] = [];
  readonly log: Told[] = [];
  /** Answers that it must not get. */
  readonly wrong: string[] = [];
  /** Results that came too late for their attempts, by their dispatches. */
  readonly late: string[] = [];
  readonly #client: Client;
  readonly #random: Random;
  readonly #seed: number;
  #calls = 0;
  #hasLeft = false;

  constructor(client: Client, seed: number, random: Random) {
    this.#client = client;
    this.#random = random;
    this.#seed = seed;
    void this.#take();
  }

  leave(): void {
    this.#hasLeft = true;
  }

  async #take(): Promise<void> {
    while (!this.#hasLeft) {
      const asked = { worker_id: "far", handlers: ["far"], max: 4, wait_ms: POLL_MS };
      const { body, pid } = await this.#post("/v1/tasks/lease", asked);
      for (const task of body.tasks as readonly Task[]) void this.#work(task, pid);
    }
  }

  /** `pid` is whose queue the task comes from. */
  async #work(task: Task, pid: number): Promise<void> {
    const { config, attempt, execution_id: execution, idempotency_key: idempotencyKey } = task;
    const token = dispatchName(task.token);
    const [, , , instance, , delivery] = token.split(":") as [string, string, string, string, string, string];
    const at = () => ({ at: this.#client.now(), pid, worker: NAME, token });
    this.log.push({
      ...at(),
      kind: "delivered",
      execution,
      node: instance,
      attempt,
      delivery: Number(delivery),
      idempotencyKey,
    });
    this.log.push({ ...at(), kind: "handlerStart", config });
    this.#note("begun", task);
    await sleep(this.#random.integer(0, LONGEST_MS));
    const isFailure = attempt <= config.failures;
    const output = { value: config.value };
    if (!isFailure) this.#note("done", task);
    this.log.push({ ...at(), kind: "handlerEnd", failed: isFailure, ...(!isFailure && { output }) });
    const error = { code: "FAR", message: "not yet", retryable: true };
    const { status, body } = isFailure
      ? await this.#post("/v1/tasks/fail", { token: task.token, error })
      : await this.#post("/v1/tasks/complete", { token: task.token, output });
    // A failure counts only while its very delivery is out; a process that has died has taken that along.
    if (status === 200 || (isFailure && status === 409)) return;
    // If the clock was set while the process was down, its deadline was in the past when it came back.
    if (status === 409) return void this.late.push(token);
    this.wrong.push(`the result of ${token} was answered ${status} ${JSON.stringify(body)}`);
  }

  #note(kind: LedgerLine["kind"], task: Task): void {
    const { execution_id: execution, node_id: node, attempt, idempotency_key: key } = task;
    this.ledger.push({ at: this.#client.now(), pid: process.pid, kind, execution, node, attempt, key });
  }

  #post(path: string, body: Json): Promise<Answer> {
    return this.#client.post(path, body, `far-${this.#seed}-${++this.#calls}`);
  }
}
