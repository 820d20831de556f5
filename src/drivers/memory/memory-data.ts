import { SlotMap } from "../../core/slot-map.ts";
import type {
  DeadLetter,
  EntityKey,
  Header,
  JournalRecord,
  Listed,
  Registration,
  Reply,
  Snapshot,
  Task,
} from "../../store/contract.ts";
import type { Place, SortedPlaces } from "./sorted-places.ts";

/** Everything the store holds: plain data, so that `copyOf` can copy it and a simulator put it back. */
export interface MemoryData {
  readonly incarnation: string;
  nextMessageId: number;
  nextTaskOrder: number;
  readonly partitions: PartitionData[];
  readonly entities: Map<EntityKey, EntityData>;
  readonly headers: Map<EntityKey, Header>;
  /** Of these, the ones that have ended. */
  endedCount: number;
  /** And the ones that are open, and belong to a workflow. */
  openCount: number;
  readonly headerPlaces: SortedPlaces;
  readonly replies: Map<string, Reply[]>;
  tasks: TaskData;
  readonly deadLetters: Map<string, DeadLetter>;
  readonly deadLetterPlaces: SortedPlaces;
  readonly lists: Map<string, ListData>;
  /** What is on any list, by its entity. */
  readonly listedOf: Map<EntityKey, Set<Listed>>;
  /** Texts by scope, then hash. */
  readonly records: Map<string, Map<string, string>>;
  /** Versions by name, then hash. */
  readonly published: Map<string, Map<string, number>>;
  /** Of these the hashes that were unpublished, by name: their numbers stay theirs. */
  readonly unpublished: Map<string, Set<string>>;
  readonly registrations: Map<string, RegistrationData>;
}

export interface PartitionData {
  epoch: number;
  /** null while nobody has the partition. */
  nonce: string | null;
  owner: string;
  leaseUntilMs: number;
  seq: number;
  lastBatch: string | null;
  lastTimeMs: number;
  strikes: number;
  suspect: string | null;
  /** The last tenure was released, or its last commit had no suspect: if it ends now, that is no strike. */
  isClean: boolean;
  /** By id, smallest first. */
  readonly inbox: StoredMessage[];
  readonly wakes: WakeData;
}

export interface StoredMessage {
  readonly id: number;
  readonly text: string;
  readonly start: boolean;
  /** Instead of its text, where it was handed over as a value. */
  readonly value?: unknown;
  readonly chars: number;
}

export interface WakeData {
  readonly at: Map<EntityKey, number>;
  readonly places: SortedPlaces;
}

export interface EntityData {
  version: number;
  readonly records: JournalRecord[];
  snapshot: Snapshot | null;
}

export interface ListData {
  readonly byId: Map<string, Listed>;
  readonly places: SortedPlaces;
}

export interface TaskData {
  readonly byToken: SlotMap<string, StoredTask>;
  readonly queues: Map<string, QueueData>;
  /** One entry per lease, at the time it had when it was filed: a lease found extended is filed again. */
  readonly lapses: Place[];
  leased: number;
}

export interface StoredTask {
  readonly task: Task;
  /** Who has it, and in which life of the store it was taken; empty while queued. */
  ref: string;
  readonly priority: number;
  readonly order: number;
  /** When it came, by the wall clock. */
  readonly atMs: number;
  /** null while queued. */
  leaseUntilMs: number | null;
  /** Its owner wants it no more: who has it is told, and one that nobody has is only left in the heap of its queue. */
  isRevoked: boolean;
}

export interface QueueData {
  /** How many of `heap` are still queued. */
  size: number;
  readonly heap: StoredTask[];
}

export interface RegistrationData {
  readonly registration: Registration;
  readonly untilMs: number;
}

export function emptyData(incarnation: string, partitionCount: number): MemoryData {
  return {
    incarnation,
    nextMessageId: 1,
    nextTaskOrder: 1,
    partitions: Array.from({ length: partitionCount }, emptyPartition),
    entities: new Map(),
    headers: new Map(),
    endedCount: 0,
    openCount: 0,
    headerPlaces: [],
    replies: new Map(),
    tasks: emptyTasks(),
    deadLetters: new Map(),
    deadLetterPlaces: [],
    lists: new Map(),
    listedOf: new Map(),
    records: new Map(),
    published: new Map(),
    unpublished: new Map(),
    registrations: new Map(),
  };
}

export function emptyTasks(): TaskData {
  return { byToken: new SlotMap(), queues: new Map(), lapses: [], leased: 0 };
}

/** All of it once more. */
export function copyOf(data: MemoryData): MemoryData {
  const { tasks, ...rest } = data;
  // All of the tasks at once: the queues hold the same ones that are found by their tokens.
  const { byToken, ...others } = structuredClone({ ...tasks, byToken: new Map(tasks.byToken) });
  const copied = new SlotMap<string, StoredTask>();
  for (const [token, task] of byToken) copied.set(token, task);
  return { ...structuredClone(rest), tasks: { ...others, byToken: copied } };
}

function emptyPartition(): PartitionData {
  return {
    epoch: 0,
    nonce: null,
    owner: "",
    leaseUntilMs: 0,
    seq: 0,
    lastBatch: null,
    lastTimeMs: 0,
    strikes: 0,
    suspect: null,
    isClean: true,
    inbox: [],
    wakes: { at: new Map(), places: [] },
  };
}
