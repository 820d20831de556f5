import { setTimeout as sleep } from "node:timers/promises";
import type { Archive } from "../../src/store/archive.ts";

const LOOK_MS = 200;
const NEWEST = 300;

/**
 * Looks into an archive while it is written: at any moment its lists say no more than its records do. Who lost the store then
 * and made it again would take for the end of something what is none, and never go on with it.
 */
export class ArchiveWatch {
  readonly wrong = new Set<string>();
  readonly #open: () => Archive;
  #isOver = false;
  #watching: Promise<void> | undefined;

  constructor(open: () => Archive) {
    this.#open = open;
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const archive = this.#open();
    while (!this.#isOver) {
      // It may be away, or not made yet: it is one of those that are struck.
      await this.#look(archive).catch(() => undefined);
      await sleep(LOOK_MS);
    }
    await archive.close().catch(() => undefined);
  }

  /** What is told first was there when the records are looked at, and those only become more. */
  async #look(archive: Archive): Promise<void> {
    const { items } = await archive.queries.headers({ limit: NEWEST });
    const tips = await archive.tips(items.map(({ entity }) => entity));
    for (const { entity, version, status } of items) {
      const reached = tips.get(entity)?.version ?? 0;
      if (version > reached) this.wrong.add(`The archive showed ${entity} ${status} at ${version}, and had ${reached}`);
    }
  }
}
