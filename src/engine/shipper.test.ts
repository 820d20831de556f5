import { expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Archive, Shipment } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import type { Loader } from "./loader.ts";
import type { Owner } from "./owner.ts";
import { Shipper } from "./shipper.ts";
import { Unshipped } from "./unshipped.ts";

const settings = { everyMs: 1, windowMs: 0, keepMs: 0 };

interface Said {
  /** Partitions of which something was said. */
  readonly said: readonly number[];
  readonly trouble: string | undefined;
  readonly isForeign: boolean;
}

/** What the owners of these partitions say of them, once each was asked. */
async function saidOf(owners: readonly Partial<Owner>[], outcome = "shipped"): Promise<Said> {
  const said: number[] = [];
  let isForeign = false;
  const asked = new AbortController();
  const archive = {
    ship: ({ partition }: Shipment) => {
      said.push(partition);
      return Promise.resolve(outcome);
    },
    keepNames: () => Promise.resolve(),
  };
  const all = owners.map((owner, partition) => {
    const unshipped = new Unshipped(partition, settings);
    unshipped.wasRead(true);
    const tenure = { partition, incarnation: "i", epoch: 1 };
    return {
      partition,
      tenure,
      unshipped,
      valid: true,
      leaseUntilMs: Infinity,
      time: { nowMs: (): number => 0 },
      ...owner,
    };
  });
  const store = { queries: { workflows: () => Promise.resolve({ items: [], cursor: null }) } };
  const shipper = new Shipper({
    store: store as unknown as Store,
    archive: archive as unknown as Archive,
    host: {
      ...nodeHost,
      sleep: () => {
        asked.abort();
        return Promise.resolve();
      },
    },
    settings,
    machines: new Map(),
    loader: undefined as unknown as Loader,
    observer: {
      archiveForeign: () => {
        isForeign = true;
      },
    },
    notes: undefined,
    owners: () => all as unknown as readonly Owner[],
  });
  await shipper.run(asked.signal);
  return { said, trouble: shipper.state.trouble, isForeign };
}

test("says how far a partition has come only while nobody else can own it", async () => {
  const lapsed = { leaseUntilMs: nodeHost.monotonicMs() };
  const { said, trouble } = await saidOf([{}, lapsed, { valid: false }, {}]);
  expect([said, trouble]).toEqual([[0, 3], undefined]);
});

test("tells when the archive is that of another store", async () => {
  expect(await saidOf([{}], "foreign")).toMatchObject({ isForeign: true, trouble: expect.stringContaining("recover") });
});
