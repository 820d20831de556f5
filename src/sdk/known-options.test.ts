import { expect, test } from "vitest";
import { type Client, connect, embedded, worker, workflow } from "./index.ts";

const nothing = () => null;
const child = workflow("child").output({});
const refusals: readonly [call: (options: never) => unknown, options: object, says: string][] = [
  [(o) => workflow("w", o), { timout: 1 }, '"timout" is no option of the workflow "w". Did you mean "timeout"?'],
  [(o) => node(o), { retyr: 1 }, '"retyr" is no option of the node "a". Did you mean "retry"?'],
  [
    (o) => node(o),
    { retry: { attempt: 2 } },
    '"attempt" is no option of retry of the node "a". Did you mean "attempts"?',
  ],
  [(o) => node(o), { cache: { tll: 1 } }, '"tll" is no option of cache of the node "a". Did you mean "ttl"?'],
  [(o) => node(o), { limit: { rat: 1 } }, 'limit of the node "a". Did you mean "rate"?'],
  [(o) => node(o), { limit: { breaker: { open: 1 } } }, 'limit.breaker of the node "a". It has failureRate, window, '],
  [(o) => node(o), { concurrency: { limits: 1 } }, 'concurrency of the node "a". Did you mean "limit"?'],
  [(o) => node(o), { budget: { estimate: { token: 1 } } }, 'budget.estimate of the node "a". Did you mean "tokens"?'],
  [
    (o) => node(o),
    { budget: { prices: { gpt: { in: 1 } } } },
    'budget.prices.gpt of the node "a". It has input, output',
  ],
  [(o) => workflow("w", o), { retry: { retryIf: nothing } }, 'retry of the workflow "w". It has attempts, backoff, '],
  [(o) => workflow("w", o), { limits: { api: { rte: 1 } } }, 'limits.api of the workflow "w". Did you mean "rate"?'],
  [(o) => workflow("w", o), { budget: { onlimit: 1 } }, 'budget of the workflow "w". Did you mean "onLimit"?'],
  [(o) => workflow("w").task("a", o), { repeat: { evry: 1 } }, 'repeat of the task "a". Did you mean "every"?'],
  [(o) => workflow("w").review("a", o), { escalate: { afer: 1 } }, 'escalate of the review "a". Did you mean "after"?'],
  [
    (o) => workflow("w").review("a", o),
    { onExpire: { approve: 1 } },
    '"approve" is no option of onExpire of the review',
  ],
  [(o) => workflow("w").repeat("a", o, nothing, () => true), { evry: 1 }, 'the repeat "a". Did you mean "every"?'],
  [(o) => workflow("w").map("a", o, nothing), { over: [], ovre: 1 }, 'the map "a". Did you mean "over"?'],
  [(o) => workflow("w").sub("a", child, o), { inputs: {} }, 'the sub "a". Did you mean "input"?'],
  [(o) => workflow("w").task("a", o), { handler: "h", confg: {} }, 'the task "a". Did you mean "config"?'],
  [(o) => workflow("w").approval("a", o), { title: "t", exipresIn: 1 }, 'the review "a". Did you mean "expiresIn"?'],
  [(o) => workflow("w").sleep("a", o), { fro: 1 }, 'the sleep "a". Did you mean "for"?'],
  [(o) => workflow("w").signal("a", o), { queue: "q" }, '"queue" is no option of the signal "a". It has after, join, '],
  [(o) => workflow("w").router("a", o), { routes: {}, esle: "x" }, 'the router "a". Did you mean "else"?'],
  [(o) => workflow("w").end("a", o), { outputs: 1 }, 'the end "a". Did you mean "output"?'],
  [(o) => workflow("w").fail("a", o), { mesage: "m" }, 'the fail "a". Did you mean "message"?'],
  [(o) => embedded(o), { datadir: "x" }, '"datadir" is no option of embedded. Did you mean "dataDir"?'],
  [(o) => connect(o), { toke: "x" }, '"toke" is no option of connect. Did you mean "token"?'],
  [(o) => worker(o), { handler: {} }, '"handler" is no option of worker. Did you mean "handlers"?'],
  [(o) => client().start(child, {}, o), { label: {} }, '"label" is no option of start. Did you mean "labels"?'],
  [(o) => client().run(child, {}, o), { timeuot: 1 }, '"timeuot" is no option of run. Did you mean "timeout"?'],
  [(o) => client().startByName("w", {}, o), { versoin: 1 }, 'startByName. Did you mean "version"?'],
  [(o) => client().get("e").result(o), { timout: 1 }, 'result. Did you mean "timeout"?'],
];

function node(options: never): unknown {
  return workflow("w").node("a", options, nothing);
}

/** Options are looked at before anything is sent. */
function client(): Client {
  return connect({ url: "http://127.0.0.1:1" });
}

test.each(refusals)("%s refuses %o", async (call, options, says) => {
  const refused = (async () => call(options as never))();
  await expect(refused).rejects.toBeInstanceOf(TypeError);
  await expect(refused).rejects.toThrow(says);
});

test("an option that is undefined is none", () => {
  expect(() => node({ retries: undefined, cache: { tll: undefined } } as never)).not.toThrow();
});
