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
import type { SortedPlaces } from "./sorted-places.ts";

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
  /** What those wait for who read its inbox. Made once, as that of a queue: a new text would have to be hashed for every message. */
  readonly waitKey: string;
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

/** A class, as is a stored task: see `Resident` for what V8 makes of those that are none. */
export class StoredMessage {
  readonly id: number;
  readonly start: boolean;
  readonly text: string;
  readonly chars: number;
  /** Instead of its text, where it was handed over as a value. */
  readonly value: unknown;

  constructor(id: number, start: boolean, text: string, chars: number, value?: unknown) {
    this.id = id;
    this.start = start;
    this.text = text;
    this.chars = chars;
    this.value = value;
  }
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
  readonly lapses: Lapse[];
  leased: number;
}

/** When to look whether a lease has run out. */
export interface Lapse {
  readonly atMs: number;
  /** The token of its task. */
  readonly key: string;
  /** Its task is. */
  isGone: boolean;
}

export class StoredTask {
  readonly task: Task;
  /** Who has it, and in which life of the store it was taken; empty while queued. */
  ref = "";
  readonly priority: number;
  readonly order: number;
  /** When it came, by the wall clock. */
  readonly atMs: number;
  /** null while queued. */
  leaseUntilMs: number | null = null;
  /** Its owner wants it no more: who has it is told, and one that nobody has is only left in the heap of its queue. */
  isRevoked = false;
  /** Its entry among the lapses, which is told when it goes: so nobody need look up whose lease is over. */
  lapse: Lapse | null = null;

  constructor(task: Task, order: number, atMs: number) {
    this.task = task;
    this.priority = task.priority;
    this.order = order;
    this.atMs = atMs;
  }
}

export interface QueueData {
  /** What those wait for who want its tasks. */
  readonly waitKey: string;
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
    partitions: Array.from({ length: partitionCount }, (_, partition) => emptyPartition(partition)),
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

function emptyPartition(partition: number): PartitionData {
  return {
    waitKey: `inbox/${partition}`,
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
