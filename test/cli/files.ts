/** Workflows that need nothing but the built-in handlers. */
export const HELLO = `name: hello
nodes:
  - { id: load, handler: transform, config: { value: { n: "{{ input.n | default(1) }}" } } }
  - { id: wait, handler: delay, dependencies: [load], config: { seconds: 0.05 } }
  - { id: twice, handler: transform, dependencies: [load], config: { expression: "load.n * 2.0" } }
  - { id: merge, handler: output, dependencies: [wait, twice], config: { twice: "{{ twice }}" } }
`;

/** A workflow in TypeScript that calls another one, and that one. */
export const MODULE = `import { workflow } from "millrace";
const inner = workflow("inner");
export const doubled = inner.output({ two: inner.node("two", () => 2) });
const wf = workflow("outer");
const load = wf.node("load", () => ({ n: 1 }));
const child = wf.sub("child", doubled, { after: { load } });
export default wf.output({ load, child });
`;

/** Port 2 refuses connections everywhere. */
export const FAILING = `name: failing
nodes:
  - { id: ok, handler: transform, config: { value: 1 } }
  - { id: call, handler: http, dependencies: [ok], config: { url: "http://127.0.0.1:2/" }, retry: { max_attempts: 1 } }
  - { id: after, handler: transform, dependencies: [call], config: { value: 2 } }
`;

export const PARTIAL: string = FAILING.replace("name: failing", "name: partial\non_error: fail_branch");

export const SLOW = `name: slow
nodes:
  - { id: pause, handler: delay, config: { seconds: 600 } }
`;

export const REVIEW = `name: review
nodes:
  - { id: ask, handler: review, config: { title: "Pay?", values: { to: bob }, source: { to: line 1 }, form: { type: object, required: [ok], properties: { ok: { type: boolean } } } } }
  - { id: done, handler: output, dependencies: [ask], config: { decision: "{{ ask.decision }}", data: "{{ ask.data }}" } }
`;

/** Something else ends after the person was asked. */
export const REVIEW_FIRST = `name: review-first
nodes:
  - { id: ask, handler: review, config: { title: "Pay?" } }
  - { id: other, handler: delay, config: { seconds: 0.2 } }
  - { id: done, handler: output, dependencies: [ask, other] }
`;

export const SPENDING = `name: spending
limits: { site: { rate: 100 } }
budget: { calls: 1, on_limit: pause }
nodes:
  - { id: a, handler: transform, limit: site, config: { value: 1 } }
  - { id: b, handler: transform, dependencies: [a], config: { value: 2 } }
`;

export const SIGNAL = `name: signal
nodes:
  - { id: gate, handler: wait, config: { signal: go } }
  - { id: done, handler: output, dependencies: [gate], config: { got: "{{ gate }}" } }
`;

export const TYPED_INPUT = `name: typed
input_schema: { type: object, required: [n], properties: { n: { type: number } } }
nodes:
  - { id: a, handler: output, config: { n: "{{ input.n }}" } }
`;

/** Six things are wrong with it. */
export const BROKEN: string = JSON.stringify(
  {
    name: "invoice",
    nodes: [
      { id: "load", handler: "htp", config: { url: "https://example.com" } },
      { id: "ocr", handler: "transform", dependencies: ["load", "check"], config: { value: 1 } },
      { id: "clean", handler: "transform", dependencies: ["ocr"], config: { value: "{{ meta.size }}" } },
      { id: "merge", handler: "transform", dependencies: ["ocr", "metadata"], config: { value: 1 } },
      { id: "check", handler: "transform", dependencies: ["clean"], config: { value: 1 }, timeout_seconds: -5 },
      { id: "ocr", handler: "transform", config: { value: 1 } },
      { id: "meta", handler: "transform", config: { value: { size: 1 } } },
    ],
  },
  null,
  2,
);
