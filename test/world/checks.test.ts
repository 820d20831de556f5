import { expect, test } from "vitest";
import type { CommitBatch } from "../../src/store/contract.ts";
import { brokenPromises, type Evidence } from "./checks.ts";
import { commitEntry } from "./history.ts";
import { Journals } from "./journals.ts";
import type { NotedCommit } from "./notes.ts";
import { Witness } from "./witness.ts";

const KEY = "cache/77b8b128cdc53ccde4c7159d3b5d0712";
const ASKED = { execution: "execution/e", ask: 1 };
const EVENTS = [
  { kind: "cacheAsked", atMs: 1, ...ASKED, node: "c" },
  { kind: "cacheGranted", atMs: 1, ...ASKED },
  { kind: "cacheReturned", atMs: 2, ...ASKED, failed: true },
];

const LISTS = { executions: [], reviews: [], letters: [], workflows: [], queues: [] };
const REMAINS = { tasks: [], inbox: 0, wakes: [], headers: [], deadLetters: [], listed: [], folds: [] };
const EMPTY = {
  timeMs: 5,
  suspect: null,
  records: [],
  headers: [],
  wakes: [],
  snapshots: [],
  tasks: [],
  revoke: [],
  mail: [],
  replies: [],
  deadLetters: [],
  discard: [],
  purge: [],
};

/** What is said of a world that has nothing left, and one entity of the cache whose commits these were. */
function said(...commits: readonly Partial<CommitBatch>[]): readonly string[] {
  const witness = new Witness("/dev/null");
  const history = commits.map((commit, seq) => {
    const fence = { partition: 0, epoch: 1, nonce: "n", seq };
    const batch = { ...EMPTY, fence, id: `b${seq}`, ...commit } as unknown as CommitBatch;
    return commitEntry(seq, "engine", JSON.parse(witness.commitText(batch)) as NotedCommit);
  });
  const evidence = {
    people: { runs: [], heard: [] },
    views: { executions: new Map(), outputs: new Map(), events: new Map(), lists: LISTS },
    journals: new Journals({ definitions: {}, records: [], snapshot: () => undefined }),
    log: [],
    ledger: [],
  } as unknown as Evidence;
  const world = { seed: 1, definitions: {}, published: {}, history, liveness: false, lossy: false, poisoned: [] };
  const found = [...brokenPromises({ ...world, remains: REMAINS }, evidence)];
  return found.filter((sentence) => sentence.startsWith("The journal of"));
}

const records = [{ entity: KEY, version: 1, count: EVENTS.length, format: 1, text: JSON.stringify(EVENTS) }];

test("a place in the cache that is gone is missed, unless a commit has removed it", () => {
  expect(said({ records })).toEqual([`The journal of ${KEY} is not what its commits wrote`]);
  expect(said({ records }, { purge: [KEY] })).toEqual([]);
  expect(said({ records }, { purge: [KEY] }, { records })).toHaveLength(1);
});
