import { DEFINITION_SCOPE, entityKey } from "../core/entity.ts";
import type { Labels } from "../core/message.ts";
import type { Workflow } from "../definition/workflow.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { Surroundings } from "./generate-config.ts";
import { WorldCaches } from "./generate-caches.ts";
import { WorldBudgets } from "./generate-budgets.ts";
import { WorldLimits } from "./generate-limits.ts";
import { randomWorkflow } from "./generate.ts";
import { bodyHashOf, type Client, describeOutcome, type People, type Town } from "./people.ts";
import type { Random } from "./random.ts";

/** What is run instead of generated workflows. */
export interface Given {
  readonly seed: number;
  readonly workflow?: Workflow;
  readonly input?: Json;
  /** The store may forget what it had acknowledged. */
  readonly forgets?: boolean;
}

interface Start {
  readonly workflow: string;
  readonly definition: string;
  readonly parent: string | undefined;
  readonly hold: boolean;
}

/** Those who bring workflows and have them run: they hold, trigger and cancel what is theirs. */
export class Submitters {
  /** The definitions that were published under a name, oldest first. */
  readonly published: Record<string, string[]> = {};
  readonly executions: string[] = [];
  private left = 0;
  private readonly town: Town;
  private readonly people: People;
  private readonly given: Given;
  private readonly epochMs: number;
  private readonly limits: WorldLimits;
  private readonly caches: WorldCaches;
  private readonly budgets: WorldBudgets;

  constructor(town: Town, people: People, given: Given, epochMs: number) {
    this.town = town;
    this.people = people;
    this.given = given;
    this.epochMs = epochMs;
    this.limits = new WorldLimits(given.seed);
    this.caches = new WorldCaches(given.seed);
    this.budgets = new WorldBudgets(given.seed);
  }

  get isBusy(): boolean {
    return this.left > 0;
  }

  start(count: number, clients: readonly Client[], random: Random): void {
    const library = this.given.workflow === undefined ? this.library(random.fork()) : [];
    for (let i = 0; i < count; i++) {
      const own = random.fork();
      const id = own.hex(12);
      this.executions.push(id);
      const workflow = this.given.workflow ?? this.endowed(randomWorkflow(own, `w${i}`, this.surroundings(library, 0)));
      const client = own.pick(clients);
      this.left++;
      this.town.timeline.after(
        own.integer(0, 15_000),
        () => void this.submit(client, own, id, workflow, library).finally(() => this.left--),
      );
    }
  }

  /** Workflows that others run as children; each may run those before it. */
  private library(random: Random): readonly Workflow[] {
    const library: Workflow[] = [];
    for (let level = 3; level >= 1; level--) {
      library.push(this.endowed(randomWorkflow(random, `lib${level}`, this.surroundings(library, level))));
    }
    return library;
  }

  private endowed(workflow: Workflow): Workflow {
    return this.budgets.put(this.caches.put(this.limits.put(workflow)));
  }

  /** Nothing is around what people submit. */
  private surroundings(library: readonly Workflow[], depth: number): Surroundings {
    return { library: library.map(({ name }) => name), depth, epochMs: this.epochMs, around: [], inMap: false };
  }

  private async submit(
    client: Client,
    random: Random,
    id: string,
    workflow: Workflow,
    library: readonly Workflow[],
  ): Promise<void> {
    for (const other of library) await this.publish(client, other);
    const definition = await this.put(client, workflow);
    const input = this.given.input ?? {
      n: random.integer(0, 6),
      ...(random.chance(0.2) && { items: [1, "two", null] }),
    };
    const parent = random.chance(0.3) ? entityKey("tally", `t${random.integer(0, 1)}`) : undefined;
    const hold = random.chance(0.15);
    const start = { workflow: workflow.name, definition, parent, hold };
    const starts = [this.startUntilKnown(client, id, start, input)];
    // A second request under the same id: the same again, or something else.
    if (random.chance(0.15))
      starts.push(this.startUntilKnown(client, id, start, random.chance(0.5) ? input : { n: 100 }));
    await Promise.all(starts);
    if (this.given.forgets === true)
      void this.startAgain(client, random.fork(), { ...start, parent: undefined, hold: false }, input);
    if (random.chance(0.2)) this.people.signalEarly(id);
    if (random.chance(0.01)) await this.people.flood(id);
    if (hold) await this.trigger(client, random, id);
    if (!random.chance(0.1)) return;
    await client.process.host.sleep(random.integer(0, 8_000));
    await this.people.askUntilKnown(id, { kind: "cancel" }, random.chance(0.3));
  }

  /** Somebody who has put a definition once, and does not put it again: the store may have forgotten it since. */
  private async startAgain(client: Client, random: Random, start: Start, input: Json): Promise<void> {
    const id = random.hex(12);
    this.executions.push(id);
    this.left++;
    await client.process.host.sleep(random.integer(0, 15_000));
    await this.startUntilKnown(client, id, start, input).finally(() => this.left--);
  }

  /** What is held is triggered sooner or later, perhaps by two at once; or somebody thinks better of it. */
  private async trigger(client: Client, random: Random, id: string): Promise<void> {
    await client.process.host.sleep(random.integer(0, 5_000));
    if (random.chance(0.1)) return void (await this.people.askUntilKnown(id, { kind: "cancel" }));
    const input = random.chance(0.3) ? { input: { json: { n: random.integer(0, 6) } } } : {};
    const triggers = random.chance(0.3) ? 2 : 1;
    await Promise.all(
      Array.from({ length: triggers }, () =>
        this.people.askUntilKnown(id, { kind: "trigger", ...input }, random.chance(0.3)),
      ),
    );
  }

  private async put({ process, store }: Client, workflow: Workflow): Promise<string> {
    const text = JSON.stringify(workflow);
    const definition = contentHash(text);
    this.town.define(definition, workflow);
    for (;;) {
      try {
        const record = { scope: DEFINITION_SCOPE, hash: definition, text };
        const outcome = await store.records.put([record], { refusable: true });
        if (outcome === "stored") return definition;
      } catch {
        // No answer: putting the same again is safe.
      }
      await process.host.sleep(200);
    }
  }

  private async publish(client: Client, workflow: Workflow): Promise<void> {
    const hash = await this.put(client, workflow);
    const known = (this.published[workflow.name] ??= []);
    if (!known.includes(hash)) known.push(hash);
    for (;;) {
      try {
        await client.store.records.publish(workflow.name, hash);
        return;
      } catch {
        await client.process.host.sleep(200);
      }
    }
  }

  private async startUntilKnown(client: Client, execution: string, start: Start, input: Json): Promise<void> {
    const { workflow, definition, parent, hold } = start;
    const bodyHash = bodyHashOf(definition, input);
    const body = {
      kind: "start" as const,
      workflow,
      definition,
      input: { json: input },
      bodyHash,
      ...(hold && { hold }),
      ...(parent !== undefined && { parent: { entity: parent, instance: execution } }),
      ...labelsOf(execution),
    };
    for (let attempt = 0; attempt < 50; attempt++) {
      const submit = { log: "client" as const, execution, definition, bodyHash, input, hold };
      this.town.record({
        ...submit,
        kind: "submit",
        at: this.town.timeline.now,
        ...(parent !== undefined && { parent }),
      });
      const request = {
        to: entityKey("execution", execution),
        by: "client",
        id: `start:${execution}:${bodyHash}`,
        body,
      };
      const outcome = await client.requests.send(request, 3_000);
      const { answer: _, ...said } = describeOutcome(outcome);
      this.town.record({ log: "client", kind: "submitted", at: this.town.timeline.now, execution, bodyHash, ...said });
      if (said.outcome === "ok" || said.outcome === "refused") return;
      await client.process.host.sleep(500);
    }
  }
}

/** Some have labels. Drawn from the name, so that worlds of before come out as they did. */
function labelsOf(execution: string): { readonly labels?: Labels } {
  return /^[0-5]/.test(execution) ? { labels: { team: execution[0]!, run: execution } } : {};
}
