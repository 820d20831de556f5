import type { LeasedTask, Task } from "../../store/contract.ts";

type Names = readonly [queue: string, entity: string, partition: number, priority: number];

/** The names as JSON, which has no line end in it, and the text as it is: packing it too would escape all its quotes. */
export function packTask({ queue, entity, partition, priority, text }: Task): string {
  const names: Names = [queue, entity, partition, priority];
  return `${JSON.stringify(names)}\n${text}`;
}

/** The name of a task tells the scripts who has it and where it is: see `find_task` in library.lua. */
export function unpackTask(consumer: string, id: string, line: string, token: string, packed: string): LeasedTask {
  const end = packed.indexOf("\n");
  const [queue, entity, partition, priority] = JSON.parse(packed.slice(0, end)) as Names;
  const ref = `${consumer} ${id} ${line}`;
  return { ref, token, entity, partition, queue, priority, text: packed.slice(end + 1) };
}

/** Where a task is, of its name: its id and its line. Of a name that we did not give, nothing. */
export function placeOf(ref: string): string {
  const end = ref.indexOf(" ");
  return end === -1 ? "" : ref.slice(end + 1);
}
