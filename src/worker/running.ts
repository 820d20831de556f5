import type { LeasedTask } from "../store/contract.ts";
import type { Delivery } from "./delivery.ts";

/**
 * What a worker is working on, in no order. A list in which each knows its place, and no map by their tokens: they come and go with
 * every step, and hardly ever does anybody ask for one by its token.
 */
export class Running {
  readonly #all: Delivery[] = [];
  /** Made when somebody asks, and good until something changes: who asks does so for many at once. */
  #byToken: Map<string, Delivery> | undefined;

  get size(): number {
    return this.#all.length;
  }

  get all(): readonly Delivery[] {
    return this.#all;
  }

  add(delivery: Delivery): void {
    delivery.place = this.#all.length;
    this.#all.push(delivery);
    this.#byToken = undefined;
  }

  /** The last takes the place that it leaves. */
  remove(delivery: Delivery): void {
    const { place } = delivery;
    if (place < 0) return;
    const last = this.#all.pop()!;
    if (last !== delivery) {
      this.#all[place] = last;
      last.place = place;
    }
    delivery.place = -1;
    this.#byToken = undefined;
  }

  /** It is known by the token of its new lease from now on. */
  leaseAnew(delivery: Delivery, leased: LeasedTask): void {
    delivery.leased = leased;
    this.#byToken = undefined;
  }

  withToken(token: string): Delivery | undefined {
    this.#byToken ??= this.#named();
    return this.#byToken.get(token);
  }

  /** One that was let go, or of which nothing more is said, and that has not ended yet stands behind another of the same token. */
  #named(): Map<string, Delivery> {
    const byToken = new Map<string, Delivery>();
    for (const delivery of this.#all) {
      const { token } = delivery.leased;
      const known = byToken.get(token);
      if (known === undefined || known.gone !== null || known.settled) byToken.set(token, delivery);
    }
    return byToken;
  }
}
