import type { Host } from "../../host/host.ts";
import { KEPT_LEASE_MS, MAX_KEPT_LEASE_BYTES, MAX_KEPT_LEASES } from "../limits.ts";

interface Asked<Answer> {
  /** What was asked. */
  readonly body: string;
  readonly answer: Promise<Answer>;
}

/**
 * Answers to leases with a key: a repeated one must not take other tasks. They are whole, with all that their tasks are
 * given, so they are kept for as long as a client may still ask again, and only so many bytes of them.
 */
export class KeptLeases<Answer extends { readonly bytes: number }> {
  readonly #host: Host;
  readonly #underWay = new Map<string, Asked<Answer>>();
  /** The oldest first. */
  readonly #answered = new Map<string, Asked<Answer> & { readonly bytes: number; readonly untilMs: number }>();
  #bytes = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  get(name: string): Asked<Answer> | undefined {
    this.#dropOld();
    return this.#underWay.get(name) ?? this.#answered.get(name);
  }

  /** One that fails was no answer: the next with its key is asked anew. */
  add(name: string, asked: Asked<Answer>): void {
    this.#underWay.set(name, asked);
    void this.#await(name, asked);
  }

  async #await(name: string, asked: Asked<Answer>): Promise<void> {
    try {
      const { bytes } = await asked.answer;
      this.#keep(name, asked, bytes);
    } catch {
      // Whoever asked is told.
    } finally {
      this.#underWay.delete(name);
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  #keep(name: string, asked: Asked<Answer>, bytes: number): void {
    this.#answered.set(name, { ...asked, bytes, untilMs: this.#host.monotonicMs() + KEPT_LEASE_MS });
    this.#bytes += bytes;
    this.#dropOld();
    for (const oldest of this.#answered.keys()) {
      const isTooMuch = this.#bytes > MAX_KEPT_LEASE_BYTES || this.#answered.size > MAX_KEPT_LEASES;
      if (!isTooMuch || oldest === name) return;
      this.#drop(oldest);
    }
  }

  #dropOld(): void {
    const nowMs = this.#host.monotonicMs();
    for (const [name, { untilMs }] of this.#answered) {
      if (untilMs > nowMs) return;
      this.#drop(name);
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#answered.get(name)!.bytes;
    this.#answered.delete(name);
  }
}
