import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/simulator/random.ts";
import { Client } from "./client.ts";
import { CALLED, type Kind, KINDS, SLOW_KINDS } from "./kinds.ts";
import { follow } from "./follower.ts";
import { Run } from "./run.ts";

const DEFAULT_LOOK_MS = 60;
const PAGE = 500;
/** The part of executions whose events somebody follows. */
const FOLLOWED = 0.15;
const TERMINAL: ReadonlySet<string> = new Set(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"]);

/** Everybody who uses the API of a world: they start executions and look after them, whatever happens to the process. */
export class People {
  readonly client: Client = new Client();
  readonly runs: Run[] = [];
  /** What was not answered as it must be. */
  readonly wrong: string[] = [];
  readonly statuses: Map<string, string> = new Map();
  readonly reviews: Map<string, string> = new Map();
  /** What those who follow an execution have heard of it. */
  readonly heard: Map<string, readonly string[]> = new Map();
  readonly #seed: number;
  readonly #random: Random;
  /** How often the lists are looked at. */
  readonly #lookMs: number;
  readonly #kinds: readonly Kind[];
  readonly #hashes: Promise<ReadonlyMap<string, string>>;
  #following = 0;
  /** Everybody has left. */
  isOver = false;

  constructor(seed: number, random: Random, lookMs: number = DEFAULT_LOOK_MS, kinds: readonly Kind[] = KINDS) {
    this.#seed = seed;
    this.#random = random;
    this.#lookMs = lookMs;
    this.#kinds = kinds;
    this.#hashes = this.#publish([...CALLED, ...kinds]);
    void this.#look();
  }

  /** One execution of each kind; of those that take their time, one now and then or all. */
  startSome(allSlow: boolean): void {
    for (const kind of this.#kinds) {
      const isSlow = SLOW_KINDS.has(kind.definition.name);
      if (isSlow && !allSlow && !this.#random.chance(0.25)) continue;
      const key = `${this.#seed}-${this.runs.length}`;
      const input = kind.input(this.#random);
      const by = kind.isRemote === true || this.#random.chance(0.5) ? "name" : "definition";
      const run = new Run(this.client, this, { kind, input, key, by });
      this.runs.push(run);
      void this.#attend(run);
      if (this.#random.chance(FOLLOWED)) void this.#follow(run);
    }
  }

  /**
   * Goes on with what others had begun. What is not sure to be over is asked for again from its start, under the same keys:
   * so what was forgotten is there again, and nothing is there twice.
   */
  goOnWith(runs: readonly Run[], isSurelyOver: (run: Run) => boolean): void {
    for (const begun of runs) {
      const run = new Run(this.client, this, begun);
      this.runs.push(run);
      if (isSurelyOver(begun)) Object.assign(run, { id: begun.id, isOver: true });
      else void this.#attend(run);
    }
  }

  get areDone(): boolean {
    return this.runs.every(({ isOver }) => isOver) && this.#following === 0;
  }

  /** Children included. */
  get isAllOver(): boolean {
    return this.areDone && this.statuses.values().every((status) => TERMINAL.has(status));
  }

  /** What is not over, in sentences. */
  *stuck(): Iterable<string> {
    for (const { kind, id, isOver } of this.runs) {
      if (isOver) continue;
      yield `${kind.definition.name} ${id} is stuck: ${this.statuses.get(id) ?? "not accepted"}`;
    }
    const ours = new Set(this.runs.map(({ id }) => id));
    for (const [id, status] of this.statuses) {
      if (!ours.has(id) && !TERMINAL.has(status)) yield `the child ${id} is stuck: ${status}`;
    }
  }

  leave(): void {
    this.isOver = true;
    this.client.use();
  }

  async #attend(run: Run): Promise<void> {
    try {
      const hashes = await this.#hashes;
      await run.go(hashes.get(run.kind.definition.name)!);
    } catch (error) {
      this.wrong.push(String(error));
      run.isOver = true;
    }
  }

  async #follow(run: Run): Promise<void> {
    this.#following++;
    await run.until(() => true);
    // A second life has events of its own, after the end of the first.
    if (run.kind.definition.name !== "mended") this.heard.set(run.id, await follow(this.client, run.id));
    this.#following--;
  }

  async #publish(kinds: readonly Kind[]): Promise<ReadonlyMap<string, string>> {
    const hashes = new Map<string, string>();
    for (const { definition } of kinds) {
      const { status, body } = await this.client.post(
        "/v1/workflows?allow_missing_handlers=true",
        definition,
        `publish-${definition.name}`,
      );
      if (status !== 201) this.wrong.push(`${definition.name} was not taken: ${JSON.stringify(body)}`);
      hashes.set(definition.name, body.workflow_definition_id as string);
    }
    return hashes;
  }

  /** Keeps the lists in sight, and reads an execution now and then. */
  async #look(): Promise<void> {
    while (!this.isOver) {
      for (const { execution_id: id, status } of await this.list<Listed>("/v1/executions"))
        this.statuses.set(id, status);
      for (const { id, execution_id: execution, node_id: node } of await this.list<Review>("/v1/reviews")) {
        this.reviews.set(`${execution} ${node}`, id);
      }
      const started = this.runs.filter(({ id }) => id !== "");
      if (started.length > 0) await this.client.read(this.#random.pick(started).id);
      await sleep(this.#lookMs);
    }
  }

  /** Everything on a list, page by page. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who names the list knows what is on it
  async list<Item>(path: string): Promise<readonly Item[]> {
    const found: Item[] = [];
    let cursor: string | null = null;
    do {
      const more: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await this.client.get(`${path}?limit=${PAGE}${more}`);
      found.push(...(body.items as Item[]));
      cursor = body.next_cursor as string | null;
    } while (cursor !== null);
    return found;
  }
}

interface Listed {
  readonly execution_id: string;
  readonly status: string;
}

interface Review {
  readonly id: string;
  readonly execution_id: string;
  readonly node_id: string;
}
