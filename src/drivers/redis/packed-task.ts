import type { LeasedTask, Task } from "../../store/contract.ts";

type Names = readonly [queue: string, entity: string, partition: number, priority: number, atMs?: number];

/**
 * The names as JSON, which has no line end in it, and the text as it is: packing it too would escape all its quotes. The
 * scripts read the names of a task that is withdrawn.
 */
export function packTask({ queue, entity, partition, priority, text }: Task, atMs: number): string {
  const names: Names = [queue, entity, partition, priority, Math.floor(atMs)];
  return `${JSON.stringify(names)}\n${text}`;
}

export function unpackTask(token: string, packed: string): LeasedTask {
  const end = packed.indexOf("\n");
  const [queue, entity, partition, priority] = JSON.parse(packed.slice(0, end)) as Names;
  const ref = refOf(token, lineOf({ queue, priority }));
  return { ref, token, entity, partition, queue, priority, text: packed.slice(end + 1) };
}

/** The list of a queue's tasks that have one priority. */
export function lineOf({ queue, priority }: Pick<Task, "queue" | "priority">): string {
  return `${priority}:${queue}`;
}

/** What a leased task is called, from which `lineNamed` has its line. */
export function refOf(token: string, line: string): string {
  return `${token} ${line}`;
}

/** A worker over HTTP may still have what an earlier format called it: consumer, id and line. */
const FORMAT_1 = /^\S+ \d+-\d+ (.*)$/s;

/**
 * Where a task was leased from, of its name: nowhere if that is not the name of this token. Of the earlier name only the line
 * counts; whether the token is leased from there is looked up in any case.
 */
export function lineNamed({ ref, token }: { readonly ref: string; readonly token: string }): string | undefined {
  return ref.startsWith(`${token} `) ? ref.slice(token.length + 1) : FORMAT_1.exec(ref)?.[1];
}
