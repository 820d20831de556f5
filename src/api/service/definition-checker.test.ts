import { expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { nodeHost } from "../../host/node-host.ts";
import { DefinitionChecker } from "./definition-checker.ts";
import { HandlerDirectory } from "./handler-directory.ts";

test("a worker that came a moment ago is known to all who submit at the same time", async () => {
  const store = openMemory({ host: nodeHost });
  const directory = new HandlerDirectory(store, nodeHost);
  const checker = new DefinitionChecker(directory);
  const check = (name: string): Promise<readonly string[]> =>
    checker
      .check({ definition: { name, nodes: [{ id: "a", handler: "double" }] } }, false)
      .then(({ errors }) => errors.map(({ code }) => code));
  expect(await check("before")).toEqual(["UNKNOWN_HANDLER"]);
  const text = JSON.stringify({ handlers: ["double"] });
  await store.records.register({ process: "worker-1", role: "worker", text }, 60_000);
  const names = Array.from({ length: 10 }, (_, i) => `w${i}`);
  expect(await Promise.all(names.map(check))).toEqual(names.map(() => []));
  await store.close();
});

test("the same bytes are judged anew when other handlers are known", async () => {
  const store = openMemory({ host: nodeHost });
  const checker = new DefinitionChecker(new HandlerDirectory(store, nodeHost));
  const text = JSON.stringify({ name: "w", nodes: [{ id: "a", handler: "double" }] });
  const check = async (): Promise<readonly string[]> => {
    const { errors, good } = await checker.check({ source: Buffer.from(text), format: "json" }, false);
    return good === undefined ? errors.map(({ code }) => code) : [good.name];
  };
  for (let i = 0; i < 3; i++) expect(await check()).toEqual(["UNKNOWN_HANDLER"]);
  const told = JSON.stringify({ handlers: ["double"] });
  await store.records.register({ process: "worker-1", role: "worker", text: told }, 60_000);
  for (let i = 0; i < 3; i++) expect(await check()).toEqual(["w"]);
  await store.close();
});
