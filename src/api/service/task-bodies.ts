import type { TaskText } from "../../core/execution/prepare.ts";
import { fillHoles, HoleUnfilled } from "../../expression/fill-holes.ts";
import type { Hole } from "../../expression/scope.ts";
import type { Json } from "../../json/json.ts";
import type { LeasedTask, Store } from "../../store/contract.ts";

/** What a task gives its handler, before its holes are filled. */
export interface TaskBody {
  readonly config: Json;
  readonly holes: readonly Hole[];
  readonly inputs: Json | undefined;
  /** How much text it is with every hole filled: known before anything is fetched. */
  readonly bytes: number;
}

/** Config and inputs of tasks that leave the process, with their secrets and large values filled in. */
export class TaskBodies {
  readonly #store: Store;
  readonly #secret: (name: string) => string | undefined;

  constructor(store: Store, secret: (name: string) => string | undefined) {
    this.#store = store;
    this.#secret = secret;
  }

  /** Fetched if it was too large for the task, and weighed. */
  async read(task: LeasedTask, text: TaskText): Promise<TaskBody> {
    if (text.body === undefined) {
      const { config = null, holes = [], inputs } = text;
      return { config, holes, inputs, bytes: task.text.length + this.#filledBytes(holes) };
    }
    const body = (await this.#blob(task, text.body.hash)) as unknown as Omit<TaskBody, "bytes">;
    return { ...body, bytes: text.body.bytes + this.#filledBytes(body.holes) };
  }

  async fill(task: LeasedTask, { config, holes }: TaskBody): Promise<Json> {
    const blobs = new Map<string, Json>();
    for (const hole of holes) {
      if (hole.kind !== "blob" || blobs.has(hole.ref.hash)) continue;
      blobs.set(hole.ref.hash, await this.#blob(task, hole.ref.hash));
    }
    return fillHoles(config, holes, { of: "server", secret: this.#secret, blob: (hash) => blobs.get(hash) });
  }

  /** Of secrets by name. */
  values(names: readonly string[]): readonly string[] {
    return names.map((name) => this.#secret(name)).filter((value) => value !== undefined);
  }

  /** One value may fill many holes: what is small in the store is not small in an answer. */
  #filledBytes(holes: readonly Hole[]): number {
    let bytes = 0;
    for (const hole of holes) {
      if (hole.kind === "blob") bytes += hole.ref.bytes;
      else for (const part of hole.parts) if ("secret" in part) bytes += this.#secret(part.secret)?.length ?? 0;
    }
    return bytes;
  }

  async #blob(task: LeasedTask, hash: string): Promise<Json> {
    const [text] = await this.#store.records.get([{ scope: task.entity, hash }]);
    if (typeof text !== "string") throw new HoleUnfilled("VALUE_MISSING", `The value ${hash} is not in the store`);
    return JSON.parse(text) as Json;
  }
}

/** The secrets that it names. */
export function secretsOf({ holes }: TaskBody): readonly string[] {
  const names = new Set<string>();
  for (const hole of holes) {
    if (hole.kind === "secret") for (const part of hole.parts) if ("secret" in part) names.add(part.secret);
  }
  return [...names];
}
