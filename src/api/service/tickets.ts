import type { Host } from "../../host/host.ts";
import { Lru } from "./lru.ts";
import type { Signing } from "./signing.ts";

/** All that any process needs to settle a task, sealed into the token that its worker holds. */
export interface Ticket {
  readonly ref: string;
  readonly token: string;
  readonly entity: string;
  readonly partition: number;
  readonly leaseMs: number;
  /** By the clock of the process that leased it. */
  readonly leasedAtMs: number;
  /** The secrets that were filled in, by name: they are cut out of what is reported. */
  readonly secrets?: readonly string[];
  /** It waited elsewhere when it was sealed: its worker took it later. */
  readonly isParked?: true;
}

const PURPOSE = "task";
const REMEMBERED = 100_000;

/** The tokens of tasks that were given out. */
export class Tickets {
  readonly #signing: Signing;
  readonly #host: Host;
  /** Tasks of which nobody has to say any more that they are running. */
  readonly #told = new Lru<true>(REMEMBERED);

  constructor(signing: Signing, host: Host) {
    this.#signing = signing;
    this.#host = host;
  }

  seal(ticket: Ticket): Promise<string> {
    return this.#signing.seal(PURPOSE, JSON.stringify(ticket));
  }

  /** undefined if it is none of ours. */
  async open(sealed: string): Promise<Ticket | undefined> {
    const text = await this.#signing.open(PURPOSE, sealed);
    return text === undefined ? undefined : (JSON.parse(text) as Ticket);
  }

  /** How long it has been out. */
  runningMs({ leasedAtMs }: Ticket): number {
    return Math.max(0, Math.round(this.#host.wallMs() - leasedAtMs));
  }

  /** For how long its worker has worked on it, when that is first heard of: one that waited has just been taken. */
  begunMs(ticket: Ticket): number {
    return ticket.isParked === true ? 0 : this.runningMs(ticket);
  }

  isTold({ token }: Ticket): boolean {
    return this.#told.get(token) !== undefined;
  }

  setTold({ token }: Ticket): void {
    this.#told.set(token, true, 1);
  }
}
