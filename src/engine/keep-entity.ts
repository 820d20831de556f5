import { contentHash } from "../json/hash.ts";
import type { BatchBuilder } from "./batch.ts";
import type { Resident } from "./resident.ts";
import type { Unshipped } from "./unshipped.ts";

/** A snapshot longer than this is a record of its own. */
const INLINE_SNAPSHOT_CHARS = 256 * 1024;

/** Of a large state, one event is allowed in the tail per this many characters of snapshot. */
const SNAPSHOT_CHARS_PER_EVENT = 64;

export interface Keeping {
  /** So many events are allowed in the tail of any. */
  readonly snapshotEvents: number;
  readonly unshipped: Unshipped | null;
}

/** What the store keeps of an entity beside its events: header and snapshot, and how much of its journal. */
export function keepEntity(builder: BatchBuilder, entity: Resident, version: number, keeping: Keeping): void {
  list(builder, entity, version);
  const tail = version - entity.snapshotVersion;
  const due = Math.max(keeping.snapshotEvents, entity.snapshotChars / SNAPSHOT_CHARS_PER_EVENT);
  if (tail >= due) snapshot(builder, entity);
  cut(builder, entity, keeping.unshipped);
}

/** The header changes with the status: that is asked for alone, since most touches leave it as it is. */
function list(builder: BatchBuilder, entity: Resident, version: number): void {
  const { machine, state, key } = entity;
  if (machine.listedAs !== undefined && machine.listedAs(state) === entity.headerStatus) return;
  const header = machine.header(state);
  if (header === null || header.status === entity.headerStatus) return;
  entity.headerStatus = header.status;
  builder.header({ entity: key, version, ...header });
}

function snapshot(builder: BatchBuilder, entity: Resident): void {
  const { machine, state, key } = entity;
  const text = machine.snapshot(state);
  entity.snapshotVersion = machine.versionOf(state);
  entity.snapshotChars = text.length;
  const made = { entity: key, version: entity.snapshotVersion, format: machine.snapshotFormat };
  if (text.length <= INLINE_SNAPSHOT_CHARS) return builder.snapshot({ ...made, text });
  const hash = contentHash(text);
  builder.blobs.push({ scope: key, hash, text });
  builder.snapshot({ ...made, text: `@${hash}` });
}

/** Lets the part of its journal go that nobody needs any more: what is not in the archive yet, the archive needs. */
function cut(builder: BatchBuilder, entity: Resident, unshipped: Unshipped | null): void {
  const { machine, state, key, cutBelow } = entity;
  const renewed = machine.renewedVersion?.(state) ?? 0;
  if (renewed <= cutBelow) return;
  const below = Math.min(renewed, unshipped?.keptFrom(key) ?? renewed);
  if (below <= cutBelow) return;
  entity.cutBelow = below;
  builder.cut(key, below);
}
