import { describe } from "vitest";
import type { HistoryEntry, World } from "../history.ts";
import { plainWorld, retriedWorld, rolledBackWorld } from "./clean-worlds.ts";
import { change, itReports, node, TestWorld } from "./test-world.ts";

function followedBy(world: World, ...entries: readonly HistoryEntry[]): World {
  return { ...world, history: [...world.history, ...entries] };
}

const ACQUIRED = { log: "journal", kind: "acquired", at: 2_000, partition: 0, owner: "engine-2" } as const;
const ACKNOWLEDGED = { log: "journal", kind: "acknowledged", at: 2_000, partition: 0, owner: "engine-1" } as const;

const FENCED = {
  log: "journal",
  kind: "fenced",
  at: 2_000,
  partition: 0,
  nonce: "nonce-1",
  owner: "engine-1",
  firstSentAt: 1_999,
} as const;

/** The second owner has taken over when a commit of the first arrives. */
function lateCommit(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a", 1);
  const { nonce } = world;
  world.acquire("engine-2");
  return world.commit([world.completed("a", 1), world.ended()], { epoch: 1, nonce }).world();
}

describe("ownership", () => {
  itReports([
    ["I1", "an epoch is given out twice", () => followedBy(plainWorld(), { ...ACQUIRED, epoch: 1, nonce: "x" })],
    ["I1", "a nonce is drawn twice", () => followedBy(plainWorld(), { ...ACQUIRED, epoch: 2, nonce: "nonce-1" })],
    [
      "I1",
      "an owner keeps what another was given",
      () =>
        followedBy(
          plainWorld(),
          { ...ACQUIRED, epoch: 2, nonce: "x" },
          { log: "journal", kind: "kept", at: 2_001, partition: 0, nonce: "nonce-1", owner: "engine-1" },
        ),
    ],
    // The acknowledgement names the new tenure's nonce, under which nothing is stored.
    ["I2", "a commit of an earlier epoch takes effect", lateCommit, ["I3", "I4"]],
    [
      "I2",
      "an owner goes on that was told it is fenced",
      () => followedBy(plainWorld(), { ...FENCED, seq: 7 }, { ...FENCED, at: 2_002, seq: 8, firstSentAt: 2_001 }),
    ],
    ["I3", "a sequence number is left out", () => change(retriedWorld(), "commit", 4, { seq: 9 })],
    ["I3", "an acknowledged commit never was", () => followedBy(plainWorld(), { ...ACKNOWLEDGED, nonce: "x", seq: 9 })],
    ["I3", "an acknowledged commit is lost by a store that must not", () => ({ ...rolledBackWorld(), lossy: false })],
    ["I3", "another batch is stored", () => change(plainWorld(), "acknowledged", 1, { batch: "another" })],
    [
      "I4",
      "a commit fits by its epoch alone",
      () => {
        const world = change(plainWorld(), "acknowledged", 4, { nonce: "x" });
        return change(world, "commit", 4, { nonce: "x" });
      },
    ],
    [
      "I4",
      "a journal has a hole",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1);
        const events = [world.completed("a", 1), world.ended()];
        world.commit(events, { records: [{ entity: world.entity, version: 5, events }] });
        const [header] = world.world().remains.headers;
        const remains = { ...world.world().remains, headers: [{ ...header!, version: 5 }] };
        return world.world({ remains });
      },
    ],
    [
      "I6",
      "a worker gets what was never dispatched",
      () =>
        followedBy(plainWorld(), {
          log: "worker",
          kind: "delivered",
          at: 2_000,
          worker: "worker-1",
          token: "x:e1:1:a:1:1",
          execution: "e1",
          node: "a",
          attempt: 1,
          delivery: 1,
          idempotencyKey: "e1/a/1",
        }),
    ],
  ]);
});
