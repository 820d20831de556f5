import { expect, test } from "vitest";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import { ShippedNames } from "./shipped-names.ts";

/** A store with these names, and an archive that says which it was given. */
function shipping(names: readonly string[]): { readonly shipped: ShippedNames; readonly kept: string[] } {
  const kept: string[] = [];
  const store = {
    queries: {
      workflows: () =>
        Promise.resolve({ items: names.map((name) => ({ name, version: 1, hash: name })), cursor: null }),
    },
    records: {
      versions: (name: string) => Promise.resolve([{ version: 1, hash: name }]),
      get: (keys: readonly object[]) => Promise.resolve(keys.map(() => "{}")),
    },
  };
  const archive = {
    keep: () => Promise.resolve(),
    keepNames: () => Promise.resolve(),
    keepPublished: (name: string) => {
      kept.push(name);
      return Promise.resolve();
    },
  };
  return { shipped: new ShippedNames(store as unknown as Store, archive as unknown as Archive), kept };
}

test("a name is shipped the next time anything is, and once", async () => {
  const names = ["first"];
  const { shipped, kept } = shipping(names);
  await shipped.ship();
  names.push("second");
  await shipped.ship();
  await shipped.ship();
  expect(kept).toEqual(["first", "second"]);
});

test("a great many names are not looked through every time", async () => {
  const names = Array.from({ length: 501 }, (_, i) => `name-${i}`);
  const { shipped, kept } = shipping(names);
  await shipped.ship();
  names.push("last");
  for (let i = 0; i < 5; i++) await shipped.ship();
  expect(kept.filter((name) => name === "last")).toHaveLength(1);
});
