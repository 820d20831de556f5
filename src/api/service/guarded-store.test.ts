import { expect, test, vi } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { nodeHost } from "../../host/node-host.ts";
import { ArchiveAway, StoreError } from "../../store/store-error.ts";
import { undecided } from "./decisions.ts";
import { guarded } from "./guarded-store.ts";

const full = new StoreError("STORE_FULL", "Postgres: could not extend file: No space left on device");

test.each([
  [full, "STORE_FULL"],
  [new StoreError("STORE_LOST", "it is gone"), "STORE_UNAVAILABLE"],
  [new Error("broken pipe"), "STORE_UNAVAILABLE"],
])("%s is told as %s", async (trouble, code) => {
  const memory = openMemory({ host: nodeHost });
  memory.inbox.append = async () => {
    throw trouble;
  };
  const { inbox } = guarded(memory);
  const told = await inbox.append([]).catch((error: unknown) => error);
  expect(told).toMatchObject({ code });
  expect(undecided({ kind: "unknown", trouble: told })).toMatchObject({ code });
  expect(undecided({ kind: "unknown", trouble })).toMatchObject({ code });
  await memory.close();
});

test("an archive that does not answer is not told as the store", async () => {
  const memory = openMemory({ host: nodeHost });
  memory.queries.header = () => Promise.reject(new ArchiveAway(new Error("ECONNREFUSED")));
  const told = await guarded(memory)
    .queries.header(0, "execution/x")
    .catch((error: unknown) => error);
  const detail = "The archive does not answer, and this may be only there. Try again a little later.";
  expect(told).toMatchObject({ code: "STORE_UNAVAILABLE", more: { detail, retryAfterSeconds: 1 } });
  await memory.close();
});

test("a call that is not answered is given up, and says so", async () => {
  vi.useFakeTimers();
  // With a clock of its own: that of the others may still tick.
  vi.resetModules();
  const own = await import("./guarded-store.ts");
  const memory = openMemory({ host: nodeHost });
  memory.records.published = () => new Promise(() => {});
  let told: unknown;
  void own
    .guarded(memory)
    .records.published("w")
    .catch((error: unknown) => (told = error));
  await vi.advanceTimersByTimeAsync(9_900);
  expect(told).toBeUndefined();
  await vi.advanceTimersByTimeAsync(300);
  vi.useRealTimers();
  expect(told).toMatchObject({ code: "STORE_UNAVAILABLE", cause: new Error("no answer within 10000 ms") });
  await memory.close();
});
