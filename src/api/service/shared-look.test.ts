import { expect, test } from "vitest";
import { SharedLook } from "./shared-look.ts";

/** A look whose answers come when somebody gives them. */
function looks(): { readonly shared: SharedLook<string>; readonly given: PromiseWithResolvers<string>[] } {
  const given: PromiseWithResolvers<string>[] = [];
  const shared = new SharedLook(() => {
    const one = Promise.withResolvers<string>();
    given.push(one);
    return one.promise;
  });
  return { shared, given };
}

test("all who ask while a look is under way share the next, which begins after they asked", async () => {
  const { shared, given } = looks();
  const first = shared.ask();
  const others = [shared.ask(), shared.ask(), shared.ask()];
  expect(given).toHaveLength(1);
  given[0]!.resolve("older than the others' question");
  expect(await first).toBe("older than the others' question");
  await expect.poll(() => given.length).toBe(2);
  given[1]!.resolve("new");
  expect(await Promise.all(others)).toEqual(["new", "new", "new"]);
  expect(given).toHaveLength(2);
});

test("a look that fails fails those who share it, and nobody after them", async () => {
  const { shared, given } = looks();
  const first = shared.ask();
  const second = shared.ask();
  given[0]!.reject(new Error("away"));
  await expect(first).rejects.toThrow("away");
  await expect.poll(() => given.length).toBe(2);
  given[1]!.resolve("back");
  expect(await second).toBe("back");
  const third = shared.ask();
  expect(given).toHaveLength(3);
  given[2]!.resolve("again");
  expect(await third).toBe("again");
});
