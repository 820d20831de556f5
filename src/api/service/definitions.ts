import type { Workflow } from "../../definition/workflow.ts";
import { DEFINITION_SCOPE } from "../../core/entity.ts";
import { executionMachine } from "../../core/execution/machine.ts";
import type { Plan } from "../../core/execution/plan.ts";
import { offerText } from "../../core/execution/shared-plans.ts";
import type { Json } from "../../json/json.ts";
import { Schema, type SchemaFault } from "../../json/schema.ts";
import type { Published, Store } from "../../store/contract.ts";
import { MAX_DEFINITION_CHARS } from "../limits.ts";
import { Lru } from "./lru.ts";
import { Refusal } from "./refusal.ts";
import { SharedLook } from "./shared-look.ts";

/** What there is to know of a definition that was found good. */
export interface GoodDefinition {
  readonly hash: string;
  /** Its canonical form; as bytes of UTF-8 if it comes from another thread. */
  readonly text: string | Uint8Array<ArrayBuffer>;
  readonly name: string;
  readonly inputSchema: Json | undefined;
}

/** A stored definition, made ready as far as somebody has needed it. */
export class Definition {
  readonly hash: string;
  readonly name: string;
  readonly inputSchema: Json | undefined;
  /** How long its text is, or nearly so. */
  readonly chars: number;
  /** Its number under its name, once it is known: a number stands for one content for ever. */
  version: number | undefined;
  /** Whether it is still published: asked with every submit of it. */
  look: SharedLook<Published | null> | undefined;
  /** It was the newest of its name when that was asked last. */
  isNewest = true;
  /** A function where the plan holds all that the text does: a long one is not kept beside it. */
  #text: GoodDefinition["text"] | (() => string);
  #workflow: Workflow | undefined;
  #plan: Plan | undefined;
  #input: Schema | undefined;

  constructor({ hash, text, name, inputSchema }: GoodDefinition) {
    this.hash = hash;
    this.#text = text;
    this.chars = text.length;
    this.name = name;
    this.inputSchema = inputSchema;
    offerText(hash, this);
  }

  /** Its canonical form. */
  get text(): string {
    if (typeof this.#text === "string") return this.#text;
    if (typeof this.#text === "function") return this.#text();
    const { buffer, byteOffset, byteLength } = this.#text;
    return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
  }

  get workflow(): Workflow {
    // The plan has it, if there is one.
    return this.#plan?.workflow ?? (this.#workflow ??= JSON.parse(this.text) as Workflow);
  }

  get plan(): Plan {
    if (this.#plan === undefined) this.adopt(executionMachine.prepareDefinition(this.hash, this.text) as Plan);
    return this.#plan!;
  }

  get made(): Plan | undefined {
    return this.#plan;
  }

  /** Somebody has made the plan of it, and may need it for as long. */
  adopt(plan: Plan): void {
    this.#plan = plan;
    // It has its own.
    this.#workflow = undefined;
    this.#dropText(executionMachine.textOfDefinition?.(plan));
  }

  /** Bytes are given back at once: the collector may be long in coming. */
  #dropText(text: (() => string) | undefined): void {
    if (text === undefined) return;
    if (this.#text instanceof Uint8Array) this.#text.buffer.transfer(0);
    this.#text = text;
  }

  /** What is wrong with an input, if anything is. */
  inputFaults(input: Json): readonly SchemaFault[] {
    if (this.inputSchema === undefined) return [];
    this.#input ??= Schema.ofStored(this.inputSchema);
    return this.#input.check(input);
  }
}

/** Definitions by content hash: immutable, so never out of date. */
export class Definitions {
  readonly #store: Store;
  readonly #cache = new Lru<Definition>(MAX_DEFINITION_CHARS);

  constructor(store: Store) {
    this.#store = store;
  }

  async get(hash: string): Promise<Definition | undefined> {
    const cached = this.#cache.get(hash);
    if (cached !== undefined) return cached;
    const [text] = await this.#store.records.get([{ scope: DEFINITION_SCOPE, hash }]);
    if (typeof text !== "string") return undefined;
    const { name, input_schema: inputSchema } = JSON.parse(text) as Workflow;
    return this.#keep(new Definition({ hash, text, name, inputSchema }));
  }

  of(good: GoodDefinition): Definition {
    return this.#cache.get(good.hash) ?? this.#keep(good instanceof Definition ? good : new Definition(good));
  }

  /**
   * The definition is in the store, and published under its name. One that has a number was stored before, and is only
   * looked up: whoever starts with it notices if the store has lost it, and says `again`.
   */
  async publish(definition: Definition, again = false): Promise<number> {
    const { hash, name } = definition;
    const { records } = this.#store;
    if (definition.version !== undefined && !again) {
      definition.look ??= new SharedLook(() => this.#look(definition));
      const published = await definition.look.ask();
      if (published !== null) return published.version;
    }
    await this.keep(definition);
    definition.version = await records.publish(name, hash);
    definition.isNewest = true;
    return definition.version;
  }

  /** Some stores know the newest of a name without a look, and what is submitted again and again is mostly that. */
  async #look(definition: Definition): Promise<Published | null> {
    const { name, hash } = definition;
    const { records } = this.#store;
    if (definition.isNewest) {
      const newest = await records.published(name);
      if (newest?.hash === hash) return newest;
      definition.isNewest = false;
    }
    return records.published(name, hash);
  }

  /** The definition is in the store, under no name. */
  async keep({ hash, text }: Definition): Promise<void> {
    const put = await this.#store.records.put([{ scope: DEFINITION_SCOPE, hash, text }], { refusable: true });
    if (put === "refused") throw new Refusal("STORE_FULL", {}, { retryAfterSeconds: 2 });
  }

  /** Whether it is a version already. Its number is not kept: the first `publish` of a process stores the text again. */
  async isPublished({ version, name, hash }: Definition): Promise<boolean> {
    return version !== undefined || (await this.#store.records.published(name, hash)) !== null;
  }

  /** Its number; null if nobody has published it, as with what runs inside a map, or if its name was deleted. */
  async versionOf(hash: string): Promise<number | null> {
    const definition = await this.get(hash);
    if (definition === undefined) return null;
    if (definition.version === undefined) {
      const published = await this.#store.records.published(definition.name, hash);
      if (published === null) return null;
      definition.version = published.version;
    }
    return definition.version;
  }

  /** The same without asking the store. */
  knownVersion(hash: string): number | undefined {
    return this.#cache.get(hash)?.version;
  }

  #keep(definition: Definition): Definition {
    this.#cache.set(definition.hash, definition, definition.chars);
    return definition;
  }
}
