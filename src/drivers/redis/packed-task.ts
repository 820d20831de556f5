import type { LeasedTask, Task } from "../../store/contract.ts";

type Names = readonly [queue: string, entity: string, partition: number, priority: number];

/** The names as JSON, which has no line end in it, and the text as it is: packing it too would escape all its quotes. */
export function packTask({ queue, entity, partition, priority, text }: Task): string {
  const names: Names = [queue, entity, partition, priority];
  return `${JSON.stringify(names)}\n${text}`;
}

/** A task as the scripts keep it, with its order in front: `12 ["queue",…]\n…`. */
export function unpackTask(token: string, stored: string): LeasedTask {
  const space = stored.indexOf(" ");
  const end = stored.indexOf("\n");
  const [queue, entity, partition, priority] = JSON.parse(stored.slice(space + 1, end)) as Names;
  return { ref: stored.slice(0, space), token, entity, partition, queue, priority, text: stored.slice(end + 1) };
}
