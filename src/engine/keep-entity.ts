import { contentHash } from "../json/hash.ts";
import { nameParts } from "../store/snapshot-text.ts";
import type { BatchBuilder } from "./batch.ts";
import type { Resident } from "./resident.ts";
import type { Unshipped } from "./unshipped.ts";

/** A snapshot longer than this is records of its own. */
const INLINE_SNAPSHOT_CHARS = 256 * 1024;

/** So long is each of them, or a little longer: on its way into a store a text is copied several times. */
const PART_CHARS = 1024 * 1024;

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
  const parts = inParts(machine.snapshotPieces?.(state) ?? [machine.snapshot(state)]);
  entity.snapshotVersion = machine.versionOf(state);
  entity.snapshotChars = parts.reduce((sum, { length }) => sum + length, 0);
  const made = { entity: key, version: entity.snapshotVersion, format: machine.snapshotFormat };
  if (entity.snapshotChars <= INLINE_SNAPSHOT_CHARS) return builder.snapshot({ ...made, text: parts.join("") });
  const records = parts.map((text) => ({ scope: key, hash: contentHash(text), text }));
  builder.blobs.push(...records);
  builder.snapshot({ ...made, text: nameParts(records.map(({ hash }) => hash)) });
}

function inParts(pieces: Iterable<string>): readonly string[] {
  const parts: string[] = [];
  let part = "";
  for (const piece of pieces) {
    part += piece;
    if (part.length < PART_CHARS) continue;
    parts.push(part);
    part = "";
  }
  return part === "" ? parts : [...parts, part];
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
