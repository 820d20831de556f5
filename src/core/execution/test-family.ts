import type { Workflow } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { needKey } from "../machine.ts";
import type { Message } from "../message.ts";
import type { Value } from "../value.ts";
import { executionMachine } from "./machine.ts";
import { Trial } from "./test-execution.ts";

/**
 * An execution and all below it: each a trial of its own, with the mail between them. Nothing is delivered before the
 * test says so, and anything can be held back or delivered twice.
 */
export class Family {
  readonly members: Map<string, Trial> = new Map();
  /** Mail that was sent and has not been delivered. */
  readonly post: Message[] = [];
  private readonly named: ReadonlyMap<string, Workflow>;
  private readonly definitions = new Map<string, Workflow>();
  private readonly read = new Map<Trial, { mail: number; blobs: number }>();

  private readonly large: boolean;

  constructor(definition: Workflow, named: Readonly<Record<string, Workflow>> = {}, { large = false } = {}) {
    this.large = large;
    this.named = new Map(Object.entries(named));
    for (const [name, workflow] of this.named) this.definitions.set(`hash-of-${name}`, workflow);
    this.add("x", new Trial(definition, { large }));
  }

  get root(): Trial {
    return this.members.get("x")!;
  }

  begin(input: Value = { json: null }): this {
    this.root.begin(input);
    return this.deliver();
  }

  /** The execution that a node has called last. */
  childOf(id: string, parent: Trial = this.root): Trial {
    const child = parent.state.runs[parent.unit(id)]?.child;
    const trial = child === null || child === undefined ? undefined : this.members.get(child.execution);
    if (trial === undefined) throw new Error(`${id} has no child`);
    return trial;
  }

  /** Delivers all mail, and what follows from it, until there is none. */
  deliver(): this {
    do {
      for (const trial of this.members.values()) this.settle(trial);
      for (const message of this.post.splice(0)) this.take(message);
    } while (this.post.length > 0 || this.hasNews());
    return this;
  }

  /** Lets one go on, brings what it asks for, and collects what it has sent. */
  settle(trial: Trial): void {
    do {
      trial.settle();
      this.collect(trial);
    } while (this.supply(trial) && trial.step().length > 0);
    this.collect(trial);
  }

  take(message: Message): void {
    const id = message.to.slice("execution/".length);
    const first = message.body.kind === "cancel" ? message.body.start : message.body;
    if (!this.members.has(id) && first?.kind === "start") {
      const trial = new Trial(this.definitions.get(first.definition)!, {
        id,
        definition: first.definition,
        large: this.large,
      });
      this.add(id, trial);
    }
    const trial = this.members.get(id)!;
    this.giveBlobs(trial);
    trial.send(message.body, message.by);
    this.settle(trial);
  }

  private add(id: string, trial: Trial): void {
    trial.nowMs = this.members.get("x")?.nowMs ?? trial.nowMs;
    this.members.set(id, trial);
    this.read.set(trial, { mail: 0, blobs: 0 });
  }

  private hasNews(): boolean {
    return [...this.read].some(([trial, { mail }]) => trial.mail.length > mail);
  }

  private collect(trial: Trial): void {
    const seen = this.read.get(trial)!;
    this.post.push(...trial.mail.slice(seen.mail));
    for (const { scope, hash, text } of trial.blobs.slice(seen.blobs)) {
      if (scope === "definition") this.definitions.set(hash, JSON.parse(text) as Workflow);
    }
    this.read.set(trial, { mail: trial.mail.length, blobs: trial.blobs.length });
  }

  /** Large values that others have written into its scope. */
  private giveBlobs(trial: Trial): void {
    for (const other of this.members.values()) {
      for (const { scope, hash, text } of other.blobs) {
        if (scope === `execution/${trial.id}`) trial.fetched.set(hash, JSON.parse(text) as Json);
      }
    }
  }

  /** Whether there was something to bring. */
  private supply(trial: Trial): boolean {
    let brought = false;
    for (const need of trial.last.needs ?? []) {
      const key = needKey(need);
      if (trial.fetched.has(key)) continue;
      brought = true;
      if ("workflow" in need) {
        const { name } = need.workflow;
        const found = this.named.get(name);
        const { timeout_seconds = 0, input_schema } = found ?? {};
        const schema = input_schema === undefined ? {} : { input_schema };
        trial.fetched.set(key, found === undefined ? null : { hash: `hash-of-${name}`, timeout_seconds, ...schema });
      }
      if ("past" in need) trial.fetched.set(key, executionMachine.pastValue!(trial.events[need.past.version - 1]!)!);
      if ("blob" in need) {
        const own = trial.blobs.find(({ hash, scope }) => hash === key && scope === undefined);
        if (own !== undefined) trial.fetched.set(key, JSON.parse(own.text) as Json);
        else this.giveBlobs(trial);
      }
    }
    return brought;
  }
}
