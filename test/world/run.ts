import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../src/json/json.ts";
import type { Client } from "./client.ts";
import type { Kind } from "./kinds.ts";

const LOOK_MS = 50;
const TERMINAL: ReadonlySet<string> = new Set(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"]);

/** What the lists of the API have shown lately, for everybody who waits for something. */
export interface Sight {
  /** By execution. */
  readonly statuses: ReadonlyMap<string, string>;
  /** Ids of open reviews, by execution and node. */
  readonly reviews: ReadonlyMap<string, string>;
  /** Nobody waits for anything any more. */
  readonly isOver: boolean;
}

/** One execution, and the people who look after it until it is over. */
export class Run {
  readonly kind: Kind;
  readonly input: JsonObject;
  readonly key: string;
  /** What it is started by. */
  readonly by: "name" | "definition";
  id = "";
  isOver = false;
  readonly #client: Client;
  readonly #sight: Sight;
  #commands = 0;

  constructor(client: Client, sight: Sight, { kind, input, key, by }: Pick<Run, "kind" | "input" | "key" | "by">) {
    this.#client = client;
    this.#sight = sight;
    this.kind = kind;
    this.input = input;
    this.key = key;
    this.by = by;
  }

  /** All of it can be asked for again, under the same keys, by somebody who does not know how far it has come. */
  async go(hash: string): Promise<void> {
    const { definition, isHeld = false } = this.kind;
    this.id = await this.#client.start({
      key: this.key,
      definition,
      hash,
      input: this.input,
      by: isHeld ? "definition" : this.by,
      isHeld,
    });
    await this.kind.drive?.(this);
    await this.until((status) => TERMINAL.has(status));
    this.isOver = true;
  }

  async until(fits: (status: string) => boolean): Promise<string> {
    for (;;) {
      const status = this.#sight.statuses.get(this.id);
      if (status !== undefined && fits(status)) return status;
      await this.#wait();
    }
  }

  async signal(name: string, data: JsonObject): Promise<void> {
    const path = `/v1/executions/${this.id}/signal`;
    const asked = { kind: "signal" as const, name, data: { json: data } };
    await this.#command("signal", path, { name, data }, asked, [202]);
  }

  async approve(node: string, data: JsonObject): Promise<void> {
    const place = `${this.id} ${node}`;
    while (!this.#sight.reviews.has(place)) {
      if (TERMINAL.has(this.#sight.statuses.get(this.id) ?? "")) return;
      await this.#wait();
    }
    const review = this.#sight.reviews.get(place)!;
    const asked = { kind: "decideReview" as const, instance: node, generation: 1, decision: "approve" as const, data };
    await this.#command(`reviews/${review}`, `/v1/reviews/${review}`, { decision: "approve", data }, asked, [200]);
  }

  /** It has failed, and somebody has it done again. */
  async mend(node: string, how: "retry" | "dead letter"): Promise<void> {
    if ((await this.until((status) => status === "FAILED" || status === "COMPLETED")) === "COMPLETED") return;
    if (how === "retry") {
      const asked = { kind: "retry" as const, scope: "failed" as const };
      await this.#command("retry", `/v1/executions/${this.id}/retry`, {}, asked, [202]);
    } else {
      const letter = `${this.id}:1:${node}`;
      const letters = [{ id: letter, class: "poison" as const, queue: "mended", text: "" }];
      const asked = { kind: "retry" as const, scope: "letters" as const, letters };
      await this.#command(`dlq/${letter}/retry`, `/v1/dlq/${encodeURIComponent(letter)}/retry`, {}, asked, [202]);
    }
    await this.#untilMended();
  }

  /** Done, or given up once more: who kills the process three times while the task is out makes it poison. */
  async #untilMended(): Promise<void> {
    for (;;) {
      const status = await this.until((seen) => seen === "COMPLETED" || seen === "FAILED");
      if (status === "COMPLETED") return;
      const { body } = await this.#client.get(`/v1/executions/${this.id}`);
      if (body.status === "FAILED" && body.generation > 1) return;
      await this.#wait();
    }
  }

  /** It may have failed before, a task of it being poison: whether that was by right, the outcomes judge. */
  async cancel(): Promise<void> {
    await this.until((status) => status === "RUNNING" || status === "CANCELLED" || status === "FAILED");
    await this.#command("cancel", `/v1/executions/${this.id}/cancel`, {}, { kind: "cancel" }, [202, 409]);
  }

  async triggerAndPause(): Promise<void> {
    const asked = { kind: "trigger" as const };
    await this.#command("trigger", `/v1/workflow/trigger/${this.id}`, {}, asked, [202]);
    // It may be over by now.
    const paused = await this.#command("pause", `/v1/executions/${this.id}/pause`, {}, { kind: "pause" }, [202, 409]);
    if (paused === 202)
      await this.#command("resume", `/v1/executions/${this.id}/resume`, {}, { kind: "resume" }, [202, 409]);
  }

  async #wait(): Promise<void> {
    if (this.#sight.isOver) await new Promise(() => {});
    await sleep(LOOK_MS);
  }

  async #command(
    route: string,
    path: string,
    body: JsonObject,
    asked: Parameters<Client["command"]>[4],
    wanted: readonly number[],
  ): Promise<number> {
    const key = `${this.key}-${++this.#commands}`;
    const { status, body: said } = await this.#client.command(this.id, route, path, body, asked, key);
    if (wanted.includes(status)) return status;
    throw new Error(`${asked.kind} of ${this.kind.definition.name} ${this.id}: ${status} ${JSON.stringify(said)}`);
  }
}
