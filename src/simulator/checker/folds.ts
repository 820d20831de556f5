import { executionOf } from "./evidence.ts";
import type { Invariant } from "./invariant.ts";

/** A journal folds to the same state whole and from its newest snapshot, and no snapshot is ahead of its journal. */
const replay: Invariant = {
  id: "I5",
  name: "replay",
  world({ world, surviving }, stories, found) {
    const folded = new Set<string>();
    for (const { entity, whole, fromSnapshot } of world.remains.folds) {
      const execution = executionOf(entity);
      folded.add(execution);
      if (whole !== fromSnapshot)
        found("Folded from its newest snapshot it is not what its whole journal gives", { execution });
    }
    for (const [execution, { accepted }] of stories) {
      if (accepted !== null && !folded.has(execution)) found("Its journal could not be folded", { execution });
    }
    const versions = new Map<string, number>();
    for (const commit of surviving) {
      for (const { entity, version, events } of commit.entry.records) versions.set(entity, version + events.length - 1);
      for (const { entity, version } of commit.entry.snapshots) {
        const known = versions.get(entity) ?? 0;
        if (version <= known) continue;
        const execution = executionOf(entity);
        found(`A snapshot of version ${version} was stored when its journal had ${known} events`, {
          execution,
          commit,
        });
      }
    }
  },
};

/** Folded twice it is the same twice. */
const restartEquality: Invariant = {
  id: "I42",
  name: "restart equality",
  world({ world }, _stories, found) {
    for (const { entity, whole, again } of world.remains.folds) {
      if (whole !== again)
        found("Folded a second time its journal gives another state", { execution: executionOf(entity) });
    }
  },
};

export const FOLDS: readonly Invariant[] = [replay, restartEquality];
