/**
 * Every bound of the API. Those of a single workflow are in `definition/fields.ts`, that of an output is in
 * `worker/output.ts`, those of a store are in its capabilities.
 */

const MIB = 1_048_576;

/** Bodies, in bytes; a larger one is refused before it is read to the end. */
export const MAX_BODY_BYTES: number = MIB;
export const MAX_BULK_BYTES: number = 16 * MIB;
/** One input, however it arrives. */
export const MAX_INPUT_BYTES: number = MIB;

/** Entries of a page. */
export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 500;
/** A list that is filtered beyond what the store can find looks at this many entries before it gives a shorter page. */
export const MAX_SCANNED = 5_000;

/** What one answer shows of payloads, in bytes: of one, and of all together. */
export const INLINE_PAYLOAD_BYTES: number = 64 * 1024;
export const INLINE_ANSWER_BYTES: number = MIB;
/** An output that is asked for as a whole: it is one text here, and in whoever asks, and none can be much longer. */
export const MAX_WHOLE_OUTPUT_BYTES: number = 500 * MIB;
/** An execution with more nodes is shown without them. */
export const MAX_NODES_SHOWN = 5_000;

/** Executions started by one request. */
export const MAX_BULK_STARTS = 10_000;
/** Items of one batch, how large they may be together, and how many run at a time unless somebody says otherwise. */
export const MAX_BATCH_ITEMS = 10_000;
export const MAX_BATCH_BYTES: number = 3 * MIB;
export const DEFAULT_BATCH_CONCURRENCY = 100;
export const MAX_BATCH_CONCURRENCY = 1_000;
/** Starts that are posted at once. */
export const BULK_CHUNK = 250;
/** Such posts of one request that wait for an answer at a time: each waits for a commit, and owners have room for more. */
export const BULK_CHUNKS_AHEAD = 4;
/** Dead letters replayed by one request. */
export const MAX_BULK_REPLAYS = 10_000;
/** How fast, in executions. */
export const MAX_REPLAYS_PER_SECOND = 100;

export const MAX_KEY_CHARS = 255;
/** Keys of requests that may be repeated anyway, remembered to tell when one comes with another body. */
export const MAX_USED_KEYS = 10_000;

/** Folded executions kept to be read again, in characters of what they were folded from; in memory they are thrice that. */
export const MAX_CACHED_CHARS: number = 16 * MIB;
/** Outputs that were read from histories, and histories that are being paged through. */
export const MAX_PAST_CHARS: number = 16 * MIB;
export const MAX_PAGED_CHARS: number = 32 * MIB;
/** Definitions kept ready, in characters. */
export const MAX_DEFINITION_CHARS: number = 32 * MIB;
/** How long folding or parsing may keep the process from anything else. */
export const SLICE_MS = 10;
/** A definition larger than this is checked in a thread of its own. */
export const THREAD_BYTES: number = MIB / 4;

/** Event streams: what a client may leave unread, how long it may leave us waiting, how often we show that we live. */
export const MAX_UNREAD_BYTES: number = MIB;
export const MAX_STALL_MS = 30_000;
export const KEEP_ALIVE_MS = 15_000;
export const MAX_STREAMS = 1_000;
/** A commit wakes whoever follows an execution; they also look this often. */
export const FOLLOW_MS = 2_000;

/** Gateway: tasks of one lease, its longest wait, results of one call. */
export const MAX_LEASED = 1_000;
/** How much an answer to a lease carries before the rest is left in its queue, and what one task may be at all. */
export const MAX_LEASE_BYTES: number = 16 * MIB;
export const MAX_TASK_BYTES: number = 64 * MIB;
/** Answers to leases with a key: how many are kept, how large they may be together, and for how long after they were given. */
export const MAX_KEPT_LEASES = 1_000;
export const MAX_KEPT_LEASE_BYTES: number = 32 * MIB;
export const KEPT_LEASE_MS = 120_000;
export const MAX_LEASE_WAIT_MS = 30_000;
export const MAX_RESULTS = 1_000;
export const MAX_LEASE_SECONDS = 3_600;
export const DEFAULT_LEASE_SECONDS = 15;
export const HEARTBEAT_SECONDS = 5;
/** Queues that one worker may name. */
export const MAX_QUEUES = 1_000;

/** How long a handler stays known after a worker has named it, and a worker alive after its last word. */
export const HANDLER_KNOWN_MS: number = 7 * 86_400_000;
export const WORKER_ALIVE_MS = 15_000;

/** How long a stop waits for the requests under way. */
export const DRAIN_MS = 10_000;
