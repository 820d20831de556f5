/**
 * One look into the store for all who ask while another is under way. They share the next one, not that: what it finds may
 * be older than their question.
 */
export class SharedLook<Found> {
  readonly #look: () => Promise<Found>;
  /** Resolves when the look under way has ended, in whatever way. */
  #current: Promise<void> | undefined;
  #next: Promise<Found> | undefined;

  constructor(look: () => Promise<Found>) {
    this.#look = look;
  }

  ask(): Promise<Found> {
    if (this.#next !== undefined) return this.#next;
    if (this.#current === undefined) return this.#begin();
    return (this.#next = this.#current.then(() => this.#begin()));
  }

  /** Nobody waits for it. */
  get isIdle(): boolean {
    return this.#current === undefined && this.#next === undefined;
  }

  #begin(): Promise<Found> {
    this.#next = undefined;
    const looking = this.#look();
    const ended = (): void => void (this.#current = undefined);
    this.#current = looking.then(ended, ended);
    return looking;
  }
}
