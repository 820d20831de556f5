import type { AcquireOutcome, Fence, Partitions, RenewOutcome } from "../../store/contract.ts";
import type { KnownPartitions } from "./known-partitions.ts";
import { checkPartition, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";
import type { WatchedStanding } from "./watched-standing.ts";

type Held = readonly ["held", string];
type Acquired = readonly ["acquired", string, number, string, string, number, number, (string | null)?];

export class RedisPartitions implements Partitions {
  readonly #redis: Redis;
  readonly #known: KnownPartitions;
  readonly #standing: WatchedStanding;

  constructor(redis: Redis, known: KnownPartitions, standing: WatchedStanding) {
    this.#redis = redis;
    this.#known = known;
    this.#standing = standing;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome> {
    return this.#acquire(partition, owner, leaseMs);
  }

  async reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome> {
    // Its owner's name stays as it is.
    return this.#acquire(fence.partition, "", leaseMs, fence.incarnation, fence.epoch, fence.nonce);
  }

  async renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome> {
    const values = fences.flatMap(({ partition, incarnation, epoch, nonce }) => [partition, incarnation, epoch, nonce]);
    type Answer = readonly [number, ...(readonly string[])];
    const [storeTimeMs, ...seqs] = await run<Answer>(this.#redis, scripts.renew, leaseMs, ...values);
    this.#redis.clock.told(storeTimeMs);
    this.#watchAnew();
    const partitions = fences.map(({ partition }, i): RenewOutcome["partitions"][number] =>
      seqs[i] === "" ? { kind: "lost", partition } : { kind: "held", partition, seq: Number(seqs[i]) },
    );
    for (const { kind, partition } of partitions) if (kind === "lost") this.#known.forget(partition);
    return { storeTimeMs, partitions };
  }

  async release({ partition, incarnation, epoch, nonce }: Fence): Promise<void> {
    this.#known.forget(partition);
    await run(this.#redis, scripts.release, partition, incarnation, epoch, nonce);
  }

  /** What was written to the partitions has ended the watch over them. Nobody waits for the next one. */
  #watchAnew(): void {
    if (!this.#standing.isWatching) return;
    this.#redis.connection.line().then(
      (line) => this.#standing.watch(line, this.#redis),
      () => {},
    );
  }

  async #acquire(
    partition: number,
    owner: string,
    leaseMs: number,
    ...fence: readonly (string | number)[]
  ): Promise<AcquireOutcome> {
    checkPartition(this.#redis, partition);
    const nonce = this.#redis.host.id();
    const answer = await run<Held | Acquired>(this.#redis, scripts.acquire, partition, owner, leaseMs, nonce, ...fence);
    if (answer[0] === "held") return { kind: "held", by: answer[1] };
    this.#known.begin(partition);
    const [, incarnation, epoch, seq, lastTimeMs, storeTimeMs, strikes, suspect = null] = answer;
    this.#redis.clock.told(storeTimeMs);
    return {
      kind: "acquired",
      tenure: {
        partition,
        incarnation,
        epoch,
        nonce,
        seq: Number(seq),
        lastTimeMs: Number(lastTimeMs),
        storeTimeMs,
        strikes,
        suspect,
      },
    };
  }
}
