import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { pages } from "../../src/page/pages.ts";
import type { Archive } from "../../src/store/archive.ts";
import { withArchive } from "../../src/store/cold-reads.ts";
import type { LoadRequest, RecordKey } from "../../src/store/contract.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import { TestApi } from "../support/api.ts";
import { cleanUp, type Ended, millrace } from "./program.ts";

let isAway = false;

/** What an archive in which nothing is answers, as long as it answers. */
function answer<Args extends readonly unknown[], Answer>(
  of: (...args: Args) => Answer,
): (...args: Args) => Promise<Answer> {
  return async (...args) => {
    if (isAway) throw new Error("ECONNREFUSED");
    return of(...args);
  };
}

const nothing = answer(() => null);
const noPage = answer(() => ({ items: [], cursor: null }));
const archive = {
  queries: { header: nothing, headers: noPage, deadLetter: nothing, deadLetters: noPage, listing: noPage },
  journal: {
    load: answer((requests: readonly LoadRequest[]) => requests.map(() => ({ records: [], snapshot: null }))),
  },
  records: { get: answer((keys: readonly RecordKey[]) => keys.map(() => null)) },
  tips: answer(() => new Map()),
} as unknown as Archive;

let api: TestApi;
let failed: string;
beforeAll(async () => {
  api = await TestApi.start({
    handlers: {
      broken: () => {
        throw new HandlerError("BROKEN", "no", { retryable: false });
      },
    },
    wrap: (store) => withArchive(store, archive),
    pagesOf: (service) => pages(service, async () => []),
  });
  failed = await api.run({ name: "failing", nodes: [{ id: "f", handler: "broken" }] });
  await api.ended(failed);
});
afterAll(async () => {
  isAway = false;
  expect(api.incidents).toEqual([]);
  await api.close();
  cleanUp();
});
beforeEach(() => {
  isAway = true;
});

const INCOMPLETE = { incomplete: "archive_unavailable" };
const LEFT_OUT = "the archive does not answer: what only it has is left out\n";
const run = (...args: readonly string[]): Promise<Ended> => millrace(args, { env: { MILLRACE_URL: api.url } });

const LISTS = [
  "/v1/executions",
  "/v1/executions?status=FAILED",
  "/v1/executions?label=a=b",
  "/v1/dlq",
  "/v1/batches",
  "/v1/reviews/examples",
];

test("each list that the archive has a part of says that this part is missing", async () => {
  for (const path of LISTS) {
    const { status, body } = await api.get(path);
    expect([path, status, body]).toMatchObject([path, 200, { next_cursor: null, ...INCOMPLETE }]);
  }
  expect((await api.get("/v1/executions")).body.items).toMatchObject([{ execution_id: failed }]);
  const dry = await api.post("/v1/dlq/retry", { dry_run: true });
  expect(dry.body).toEqual({ count: 1, ...INCOMPLETE });
  // Neither can lack anything.
  for (const path of ["/v1/executions?status=RUNNING", "/v1/reviews", "/v1/workflows"]) {
    expect([path, Object.keys((await api.get(path)).body)]).toEqual([path, ["items", "next_cursor"]]);
  }
});

test("none says so while the archive is there", async () => {
  isAway = false;
  for (const path of LISTS) {
    expect([path, Object.keys((await api.get(path)).body)]).toEqual([path, ["items", "next_cursor"]]);
  }
  expect(await (await fetch(api.url)).text()).not.toContain("archive");
});

test("the page says so, and not that there is nothing", async () => {
  const all = await (await fetch(api.url)).text();
  expect(all).toContain("The archive does not answer");
  expect(all).toContain(failed);
  const none = await (await fetch(`${api.url}/?status=COMPLETED`)).text();
  expect(none).toContain("The archive does not answer");
  expect(none).not.toContain("Nothing here yet");
});

test("commands that list say so beside the list", async () => {
  expect(await run("ls")).toMatchObject({ code: 0, stderr: LEFT_OUT });
  expect(await run("dlq", "ls", "--queue", "nobody")).toMatchObject({ code: 0, stdout: "", stderr: LEFT_OUT });
  const shown = await run("ls", "--search", "failing", "--json");
  expect(shown).toMatchObject({ code: 0, stderr: LEFT_OUT });
  expect(JSON.parse(shown.stdout)).toMatchObject({ items: [{ execution_id: failed }], ...INCOMPLETE });
  expect(await run("batch", "ls")).toMatchObject({ code: 0, stderr: LEFT_OUT });
});

test("commands for all do what they can see, and end as ones that could not reach the rest", async () => {
  expect(await run("retry", "--all", "--status", "PARTIAL", "--yes")).toEqual({
    code: 6,
    stdout: "",
    stderr: LEFT_OUT,
  });
  const replay = await run("dlq", "retry", "--all", "--dry-run");
  expect(replay).toEqual({ code: 6, stdout: "1 would run again\n", stderr: LEFT_OUT });
  const none = ["dlq", "drop", "--all", "--queue", "nobody", "--yes"];
  expect(await run(...none)).toEqual({ code: 6, stdout: "", stderr: LEFT_OUT });
  expect(await run("reviews", "export")).toEqual({ code: 6, stdout: "", stderr: `0 examples\n${LEFT_OUT}` });
  // What is open has not left the store.
  expect(await run("cancel", "--all", "--yes")).toMatchObject({ code: 0, stderr: "there is nothing to cancel\n" });
});

test("a name of the newest is none that only the archive may have", async () => {
  expect((await run("show", "@failed")).stdout).toContain(failed);
  const empty = await TestApi.start({ wrap: (store) => withArchive(store, archive) });
  const told = await millrace(["show", "@failed"], { env: { MILLRACE_URL: empty.url } });
  await empty.close();
  expect([told.code, told.stderr]).toEqual([
    6,
    expect.stringContaining("no failed execution, and the archive does not"),
  ]);
});
