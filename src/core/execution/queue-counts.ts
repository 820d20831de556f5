import { FewMap } from "../few-map.ts";

/** So many queues are looked through as fast as it is said which of them have changed. */
const FEW_QUEUES = 16;

/**
 * How many tasks of an execution are out, by queue. Nearly all have a few queues; but a workflow that is written with the SDK has
 * one for each of its functions, and who has thousands must not be looked through after every step.
 */
export class QueueCounts extends FewMap<string, number> {
  /** Of all queues together. */
  total = 0;
  /** Which have changed since somebody last asked; undefined while all may have. */
  private changed: Set<string> | undefined = undefined;

  override set(queue: string, count: number): this {
    this.total += count - (this.get(queue) ?? 0);
    this.changed?.add(queue);
    return super.set(queue, count);
  }

  override delete(queue: string): boolean {
    this.total -= this.get(queue) ?? 0;
    this.changed?.add(queue);
    return super.delete(queue);
  }

  override clear(): void {
    super.clear();
    this.total = 0;
    this.changed = undefined;
  }

  /** Which queues have changed since this was last asked; undefined if all of them have to be looked at. */
  takeChanged(): ReadonlySet<string> | undefined {
    const { changed } = this;
    if (changed?.size !== 0) this.changed = this.size > FEW_QUEUES ? new Set() : undefined;
    return changed;
  }
}
