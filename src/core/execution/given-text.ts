import type { CompiledValue, Hole } from "../../expression/scope.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";

/**
 * What a node is given, as a text, and the hash of that. It remembers what is the same from execution to execution: a config without
 * templates is written once, and a text that comes again at once, as where nothing depends on the input, has the hash it had.
 */
export class GivenText {
  private readonly config: CompiledValue;
  private beginning: string | null = null;
  private lastText = "";
  private lastHash = "";

  constructor(config: CompiledValue) {
    this.config = config;
  }

  /** The same as `JSON.stringify` of all three. */
  write(config: Json, holes: readonly Hole[], inputs: Json | undefined, isChanged: boolean): string {
    if (isChanged || !this.config.constant) {
      return JSON.stringify(inputs === undefined ? { config, holes } : { config, holes, inputs });
    }
    this.beginning ??= JSON.stringify({ config, holes }).slice(0, -1);
    return `${this.beginning}${inputs === undefined ? "}" : `,"inputs":${JSON.stringify(inputs)}}`}`;
  }

  hash(text: string): string {
    if (text === this.lastText) return this.lastHash;
    const hash = contentHash(text).slice(0, 32);
    // What is large is rarely the same, and would be kept for nothing.
    if (text.length > MAX_KEPT_CHARS) return hash;
    this.lastText = text;
    return (this.lastHash = hash);
  }
}

const MAX_KEPT_CHARS = 4_096;
