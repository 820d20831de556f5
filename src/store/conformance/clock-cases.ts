import assert from "node:assert/strict";
import { type Case, clockGoesBack, PAST_SHORT_MS, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import { leaseOne } from "./things.ts";

const HOUR_MS = 3_600_000;

/** A wall clock set back must not lengthen what is measured by it. */
export const clockCases: readonly Case[] = [
  {
    role: "partitions",
    name: "a partition's lease runs out in its time although the clock was set back",
    requires: clockGoesBack,
    run: async ({ store, setClockBack, advance }) => {
      await acquire(store, 0, SHORT_MS);
      await setClockBack!(HOUR_MS);
      await advance(PAST_SHORT_MS);
      await acquire(store);
    },
  },
  {
    role: "tasks",
    name: "a task's lease runs out in its time although the clock was set back",
    requires: clockGoesBack,
    run: async ({ store, setClockBack, advance }) => {
      await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await setClockBack!(HOUR_MS);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
    },
  },
  {
    role: "records",
    name: "a process is not alive after its time although the clock was set back",
    requires: clockGoesBack,
    run: async ({ store, setClockBack, advance }) => {
      await store.records.register({ process: "p", role: "worker", text: "1" }, SHORT_MS);
      await setClockBack!(HOUR_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await store.records.registered(), []);
    },
  },
];
