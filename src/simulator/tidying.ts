import { entityKind, partitionOf } from "../core/entity.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import type { MemoryStore } from "../drivers/memory/memory-store.ts";
import type { EngineSettings } from "../engine/settings.ts";
import type { Client } from "./people.ts";
import type { SimProcess } from "./process.ts";
import type { Random } from "./random.ts";
import type { Timeline } from "./timeline.ts";

/** What of a world is tidied up, and by whom. */
export interface Estate {
  readonly timeline: Timeline;
  readonly memory: MemoryStore;
  readonly engines: readonly { readonly process: SimProcess }[];
  startEngine(): void;
  client(): Client;
  /** Our own code contradicted itself. */
  bug(message: string): void;
}

/** How long all of it may take: many times as long as things are kept. */
const TIDY_MS = 600_000;
const DEATHS = 3;
const DEATHS_WITHIN_MS = 20_000;

/** How long, and how much of it, engines keep what is over. */
export type Keeping = Pick<EngineSettings, "retentionMs" | "keepEnded">;

export function drawKeeping(random: Random): Keeping {
  return { retentionMs: random.pick([2_000, 20_000]), keepEnded: random.pick([null, null, 0]) };
}

interface Member {
  readonly parent: string | undefined;
  readonly endedAtMs: number;
}

/**
 * The end of a world in which all is over: engines that remove what has ended have taken the place of the others, and some
 * of them die at it. What was there before has no wake, so somebody asks for each execution, in any order. None goes before its
 * time, no child before its parent, and nothing is left but the children of what lives for ever.
 */
export class Tidying {
  private readonly estate: Estate;
  private readonly random: Random;
  private readonly keeping: Keeping;
  private readonly left = new Map<string, Member>();

  constructor(estate: Estate, random: Random, keeping: Keeping) {
    this.estate = estate;
    this.random = random;
    this.keeping = keeping;
    const { entities, headers } = estate.memory.data;
    for (const [entity, { records }] of entities) {
      if (entityKind(entity) !== "execution" || records[0] === undefined) continue;
      const [first] = JSON.parse(records[0].text) as ExecutionEvent[];
      const parent = first?.kind === "accepted" ? first.parent?.entity : undefined;
      this.left.set(entity, { parent, endedAtMs: headers.get(entity)?.endedAtMs ?? 0 });
    }
  }

  async run(): Promise<void> {
    const { timeline, engines } = this.estate;
    for (let i = 0; i < DEATHS; i++) {
      timeline.after(this.random.integer(500, DEATHS_WITHIN_MS), () => {
        const living = engines.filter(({ process }) => process.alive);
        if (living.length > 0) this.random.pick(living).process.kill();
        this.estate.startEngine();
      });
    }
    void this.askForAll(this.estate.client());
    await timeline.runUntil(timeline.now + TIDY_MS, () => this.isDone());
    this.judgeRest();
  }

  private async askForAll({ process, requests }: Client): Promise<void> {
    for (;;) {
      const { partitions } = this.estate.memory.data;
      const unknown = [...this.left.keys()].filter((entity) => !partitions.some(({ wakes }) => wakes.at.has(entity)));
      if (unknown.length > 0) {
        const request = this.random.hex(8);
        const body = { kind: "cancel", request } as const;
        await requests.send({ to: this.random.pick(unknown), by: "client", id: `cancel:${request}`, body }, 3_000);
      }
      await process.host.sleep(this.random.integer(0, 1_000));
    }
  }

  /** Looks at what is gone since the last step. */
  private isDone(): boolean {
    const { data } = this.estate.memory;
    for (const [entity, member] of this.left) {
      if (data.entities.has(entity)) continue;
      this.left.delete(entity);
      this.judge(entity, member);
    }
    return this.left.keys().every((entity) => this.isHeld(entity));
  }

  /** Somebody above it is no execution, and lives for ever. */
  private isHeld(entity: string): boolean {
    const { parent } = this.left.get(entity) ?? {};
    if (parent === undefined) return false;
    return entityKind(parent) === "execution" ? this.isHeld(parent) : this.estate.memory.data.entities.has(parent);
  }

  private judge(entity: string, { parent, endedAtMs }: Member): void {
    const { estate } = this;
    const { partitions, entities } = estate.memory.data;
    if (parent !== undefined && entities.has(parent)) estate.bug(`${entity} was removed before its parent ${parent}`);
    // Where only so many are kept, the time they are kept for is nobody's.
    if (this.keeping.keepEnded !== null) return;
    const { lastTimeMs } = partitions[partitionOf(entity, partitions.length)]!;
    const tooSoonMs = endedAtMs + this.keeping.retentionMs! - lastTimeMs;
    if (tooSoonMs > 0) estate.bug(`${entity} was removed ${tooSoonMs} ms before its time`);
  }

  private judgeRest(): void {
    const { data } = this.estate.memory;
    for (const entity of this.left.keys()) {
      if (!this.isHeld(entity)) this.estate.bug(`${entity} was left behind`);
    }
    const isOfExecution = (entity: string): boolean => entityKind(entity) === "execution" && !this.left.has(entity);
    for (const entity of data.headers.keys()) {
      if (isOfExecution(entity)) this.estate.bug(`the header of ${entity} was left behind`);
    }
    for (const { id, entity } of data.deadLetters.values()) {
      // Those of a quarantine stay for whoever looks for its cause.
      if (isOfExecution(entity) && !id.startsWith("quarantine:"))
        this.estate.bug(`the dead letter ${id} was left behind`);
    }
  }
}
