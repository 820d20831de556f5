import type { CommitBatch, EntityKey } from "../../store/contract.ts";

/** So many characters of a name decide with which others it is compared: of names that begin with a time, some hours. */
const PREFIX_CHARS = 16;
/** How often a name with the same beginning has to be looked for before it is worth knowing the greatest of them. */
const WORTH_KNOWING = 8;
const MOST_PREFIXES = 256;
const PLAIN = /^[\x21-\x7e]+$/;

interface Known {
  looks: number;
  /** `asked`: from now on it is followed what is written. `known`: what was written before is known too. */
  state: "unknown" | "asked" | "known";
  /** The greatest so far. */
  newest: EntityKey;
}

/**
 * Names that are greater than all there are cannot be there: who starts something new need not wait for a look into the
 * file. Names of executions begin with the time at which they were drawn, so nearly all new ones are such.
 */
export class NewestEntities {
  readonly #known = new Map<string, Known>();
  readonly #ask: (prefix: string) => Promise<EntityKey | null>;

  /** @param ask the greatest name with this beginning, after all that was sent to be written before */
  constructor(ask: (prefix: string) => Promise<EntityKey | null>) {
    this.#ask = ask;
  }

  /** Whether it is certain that nothing was ever written under this name. */
  isNew(entity: EntityKey): boolean {
    if (entity.length <= PREFIX_CHARS || !PLAIN.test(entity)) return false;
    const prefix = entity.slice(0, PREFIX_CHARS);
    let known = this.#known.get(prefix);
    if (known === undefined) {
      if (this.#known.size >= MOST_PREFIXES) this.#forgetOne();
      this.#known.set(prefix, (known = { looks: 0, state: "unknown", newest: "" }));
    }
    if (known.state === "known") return entity > known.newest;
    if (known.state === "unknown" && ++known.looks >= WORTH_KNOWING) void this.#learn(prefix, known);
    return false;
  }

  /** To be called before a batch is sent to be written: whatever becomes of it, what it begins is not new any more. */
  sent({ records }: CommitBatch): void {
    // Whatever its version: what is put back from an archive may begin anywhere.
    let prefix = "";
    let known: Known | undefined;
    for (let i = 0; i < records.length; i++) {
      const { entity } = records[i]!;
      // Nearly all of a batch begin alike.
      if (prefix.length < PREFIX_CHARS || !entity.startsWith(prefix)) {
        prefix = entity.slice(0, PREFIX_CHARS);
        known = this.#known.get(prefix);
      }
      if (known !== undefined && known.state !== "unknown" && entity > known.newest) known.newest = entity;
    }
  }

  async #learn(prefix: string, known: Known): Promise<void> {
    known.state = "asked";
    try {
      const newest = await this.#ask(prefix);
      if (newest !== null && newest > known.newest) known.newest = newest;
      known.state = "known";
    } catch {
      known.state = "unknown";
    }
  }

  /** From now on the file is asked, and says that it is closed. */
  close(): void {
    this.#known.clear();
  }

  #forgetOne(): void {
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest!);
  }
}
