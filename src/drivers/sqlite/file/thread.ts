import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { failureOf } from "./failure.ts";
import { type Done, GroupCommit } from "./group-commit.ts";
import type { Answer, Call, FromThread, Role } from "./protocol.ts";
import { FileReader } from "./reader.ts";
import { FileWriter } from "./writer.ts";

/** Calls in one transaction; the next ones wait for the next. */
const MAX_GROUP = 256;
/** Nobody has asked for anything this long: time for what nobody waits for. Some of it is done at least every second. */
const IDLE_MS = 20;
const SECOND_MS = 1000;

/** What a thread does with the calls that have come up since it last looked. */
interface Service {
  /** The answer to `open`. */
  readonly opened: unknown;
  serve(calls: readonly Call[]): void;
  close(): void;
}

const START: Record<Role, (values: Call["values"]) => Service> = { writer: startWriter, reader: startReader };
const port = parentPort!;
let service: Service | undefined;

// The first call is `open`, and nobody sends another before it is answered, unless it is `close`, which is the last.
port.on("message", (first: Call) => {
  const calls = drain(first);
  if (first.name === "open") open(calls.shift()!);
  const last = calls.at(-1)?.name === "close" ? calls.pop() : undefined;
  if (calls.length > 0) service!.serve(calls);
  if (last !== undefined) close(last);
});

function open({ id, values }: Call): void {
  const done = attempt(() => {
    service = START[workerData as Role](values);
    return service.opened;
  });
  answer([{ id, ...done }]);
}

/** Without anybody who can call it the thread ends. */
function close({ id }: Call): void {
  answer([{ id, ...attempt(() => service?.close()) }]);
  port.close();
}

function startWriter(values: Call["values"]): Service {
  const writer = new FileWriter(...(values as ConstructorParameters<typeof FileWriter>));
  const group = new GroupCommit(writer.db, () => writer.remember());
  let timer: NodeJS.Timeout | undefined;
  let tidiedAtMs = performance.now();
  const tidy = (): void => {
    tidiedAtMs = performance.now();
    // A disk without room is no reason to end: who writes next hears of it, and this is tried again after that.
    const done = attempt(() => writer.tidy());
    if ("value" in done && done.value === true) timer = setTimeout(tidy, 0);
  };
  let isFull = false;
  const look = (): void => {
    const done = attempt(() => writer.isNearlyFull());
    if (!("value" in done) || done.value === isFull) return;
    isFull = done.value === true;
    port.postMessage({ isFull } satisfies FromThread);
  };
  look();
  const looking = setInterval(look, SECOND_MS);
  return {
    opened: writer.opened,
    serve: (calls) => {
      for (let from = 0; from < calls.length; from += MAX_GROUP) {
        const some = calls.slice(from, from + MAX_GROUP);
        const done = group.run(some.map((call) => () => callOn(writer, call)));
        answer(some.map(({ id }, i) => ({ id, ...done[i]! })));
      }
      clearTimeout(timer);
      timer = setTimeout(tidy, performance.now() - tidiedAtMs > SECOND_MS ? 0 : IDLE_MS);
    },
    close: () => {
      clearTimeout(timer);
      clearInterval(looking);
      writer.close();
    },
  };
}

function startReader(values: Call["values"]): Service {
  const reader = new FileReader(...(values as ConstructorParameters<typeof FileReader>));
  return {
    opened: null,
    // One by one: whoever asks for little does not wait for who asks for much.
    serve: (calls) => {
      for (const call of calls) answer([{ id: call.id, ...attempt(() => callOn(reader, call)) }]);
    },
    close: () => reader.close(),
  };
}

/** Everything that has come up meanwhile. */
function drain(first: Call): Call[] {
  const calls = [first];
  for (;;) {
    const next = receiveMessageOnPort(port);
    if (next === undefined) return calls;
    calls.push(next.message as Call);
  }
}

function callOn(target: object, { name, values }: Call): unknown {
  return (Reflect.get(target, name) as (...values: readonly unknown[]) => unknown).apply(target, [...values]);
}

function attempt(work: () => unknown): Done {
  try {
    return { value: work() };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}

function answer(answers: readonly Answer[]): void {
  port.postMessage({ answers } satisfies FromThread);
}
