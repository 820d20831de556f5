import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { failureOf } from "./failure.ts";
import { type Done, GroupCommit } from "./group-commit.ts";
import { Housekeeping } from "./housekeeping.ts";
import type { Answer, Call, FromThread, Role } from "./protocol.ts";
import { FileReader } from "./reader.ts";
import { FileWriter } from "./writer.ts";

/** Calls in one transaction; the next ones wait for the next. */
const MAX_GROUP = 256;

const LOST: Done = {
  failure: {
    message: "the file of the store was moved or removed while it was in use",
    code: null,
    isTrouble: true,
    isRefusal: true,
  },
};

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
  const housekeeping = new Housekeeping(writer, (isFull) => port.postMessage({ isFull } satisfies FromThread));
  return {
    opened: writer.opened,
    serve: (calls) => {
      for (let from = 0; from < calls.length; from += MAX_GROUP) {
        const some = calls.slice(from, from + MAX_GROUP);
        const jobs = some.map((call) => () => callOn(writer, call));
        const done = housekeeping.hasLostFile ? some.map(() => LOST) : group.run(jobs);
        answer(some.map(({ id }, i) => ({ id, ...done[i]! })));
      }
      housekeeping.postpone();
    },
    close: () => {
      housekeeping.stop();
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
