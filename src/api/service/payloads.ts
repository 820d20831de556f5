import { executionMachine } from "../../core/execution/machine.ts";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import { INLINE_BYTES, type KeptValue, type Value } from "../../core/value.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";
import type { Store } from "../../store/contract.ts";
import { INLINE_ANSWER_BYTES, INLINE_PAYLOAD_BYTES, MAX_INPUT_BYTES, MAX_PAST_CHARS } from "../limits.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { executionKey } from "./ids.ts";
import { Lru } from "./lru.ts";
import { Refusal } from "./refusal.ts";
import type { Soon } from "./soon.ts";

/** From this size on a value says how large it is, so that nobody has to write it down only to know. */
const SAID_BYTES = 1024;

/** How much one start carries of what another execution has completed. */
const COPIED_INLINE_BYTES = 256 * 1024;

/** A payload that is to be shown, and where it can be had alone. */
export interface Payload {
  readonly value: KeptValue | null;
  readonly href: string;
}

/** Inputs and outputs: inline, as blobs of their execution, or in events of its past. */
export class Payloads {
  readonly #store: Store;
  readonly #reader: ExecutionReader;
  /** Outputs of the past, so that whoever watches an execution does not read its whole journal each time. */
  readonly #known = new Lru<string>(MAX_PAST_CHARS);

  constructor(store: Store, reader: ExecutionReader) {
    this.#store = store;
    this.#reader = reader;
  }

  /** An input as events and messages carry it; a large one is written first, under its execution. */
  keep(id: string, json: Json, limitBytes = MAX_INPUT_BYTES): Soon<Value> {
    const { text, bytes } = sizedInput(json, limitBytes);
    if (bytes <= INLINE_BYTES) return bytes < SAID_BYTES ? { json } : { json, bytes };
    return this.#keepApart(id, text, bytes);
  }

  async #keepApart(id: string, text: string, bytes: number): Promise<Value> {
    const hash = contentHash(text);
    const put = await this.#store.records.put([{ scope: executionKey(id), hash, text }], { refusable: true });
    if (put === "refused") throw new Refusal("STORE_FULL", {}, { retryAfterSeconds: 2 });
    return { blob: { hash, bytes } };
  }

  /** Values of one execution for another: small ones go along, the rest is written under the new one first. */
  async copy(id: string, texts: readonly string[]): Promise<readonly Value[]> {
    let room = COPIED_INLINE_BYTES;
    const records = new Map<string, { scope: string; hash: string; text: string }>();
    const values = texts.map((text): Value => {
      const bytes = Buffer.byteLength(text);
      if (bytes <= Math.min(room, INLINE_BYTES)) {
        room -= bytes;
        const json = JSON.parse(text) as Json;
        return bytes < SAID_BYTES ? { json } : { json, bytes };
      }
      const hash = contentHash(text);
      records.set(hash, { scope: executionKey(id), hash, text });
      return { blob: { hash, bytes } };
    });
    const put =
      records.size === 0 ? "stored" : await this.#store.records.put([...records.values()], { refusable: true });
    if (put === "refused") throw new Refusal("STORE_FULL", {}, { retryAfterSeconds: 2 });
    return values;
  }

  /** The JSON of a value, wherever it is. */
  async text(id: string, value: KeptValue | null): Promise<string> {
    const [text] = await this.texts(id, [value]);
    return text!;
  }

  /** The same for many, with one look into the journal and one into the records. */
  async texts(id: string, values: readonly (KeptValue | null)[]): Promise<readonly string[]> {
    const entity = executionKey(id);
    const hashes = new Set<string>();
    const versions = new Set<number>();
    for (const value of values) {
      if (value !== null && "blob" in value) hashes.add(value.blob.hash);
      if (value !== null && "past" in value) versions.add(value.past.version);
    }
    const blobs = new Map<string, string | null>();
    if (hashes.size > 0) {
      const keys = [...hashes].map((hash) => ({ scope: entity, hash }));
      const found = await this.#store.records.get(keys);
      for (const [i, { hash }] of keys.entries()) blobs.set(hash, found[i] ?? null);
    }
    const past = await this.#past(id, versions);
    return values.map((value) => {
      if (value === null) return "null";
      if ("json" in value) return JSON.stringify(value.json);
      const text = "blob" in value ? blobs.get(value.blob.hash) : past.get(value.past.version);
      if (typeof text !== "string") throw new MillraceError("EXECUTION_UNREADABLE", { id });
      return text;
    });
  }

  /** Outputs that have left the state, by the version of the event that brought them. */
  async #past(id: string, versions: ReadonlySet<number>): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    const missing = new Set<number>();
    const createdAtMs = this.#reader.createdAtMs(id);
    for (const version of versions) {
      const known = createdAtMs === undefined ? undefined : this.#known.get(`${id} ${createdAtMs} ${version}`);
      if (known === undefined) missing.add(version);
      else found.set(version, known);
    }
    if (missing.size === 0) return found;
    let first = Number.MAX_SAFE_INTEGER;
    for (const version of missing) first = Math.min(first, version);
    for (const record of await this.#reader.events(id, first - 1)) {
      let events: readonly ExecutionEvent[] | undefined;
      for (let i = 0; i < record.count; i++) {
        const version = record.version + i;
        if (!missing.has(version)) continue;
        events ??= JSON.parse(record.text) as ExecutionEvent[];
        const value = executionMachine.pastValue?.(events[i]!);
        if (value === undefined) continue;
        const text = JSON.stringify(value);
        found.set(version, text);
        if (createdAtMs !== undefined) this.#known.set(`${id} ${createdAtMs} ${version}`, text, text.length);
      }
      if (found.size === versions.size) break;
    }
    return found;
  }

  /**
   * What one answer shows of its payloads: those over 64 KiB by name, and, if the others are over 1 MiB together, the
   * largest of them too.
   */
  async show(id: string, payloads: readonly Payload[]): Promise<readonly string[]> {
    const inline = payloads.map(({ value }) =>
      value !== null && sizeOf(value) <= INLINE_PAYLOAD_BYTES ? value : null,
    );
    const texts = [...(await this.texts(id, inline))];
    let bytes = 0;
    for (let i = 0; i < texts.length; i++) if (inline[i] !== null) bytes += Buffer.byteLength(texts[i]!);
    if (bytes > INLINE_ANSWER_BYTES) {
      const shown = [...texts.keys()].filter((i) => inline[i] !== null);
      for (const i of shown.sort((a, b) => texts[b]!.length - texts[a]!.length)) {
        if (bytes <= INLINE_ANSWER_BYTES) break;
        const text = texts[i]!;
        const size = Buffer.byteLength(text);
        texts[i] = large(size, contentHash(text), payloads[i]!.href);
        bytes -= size;
      }
    }
    for (let i = 0; i < texts.length; i++) {
      const { value } = payloads[i]!;
      if (value === null || inline[i] !== null) continue;
      if ("blob" in value) {
        texts[i] = large(value.blob.bytes, value.blob.hash, payloads[i]!.href);
      } else {
        const whole = await this.text(id, value);
        texts[i] = large(Buffer.byteLength(whole), contentHash(whole), payloads[i]!.href);
      }
    }
    return texts;
  }
}

/** An input as text; throws if it is too large. */
export function sizedInput(
  json: Json,
  limitBytes = MAX_INPUT_BYTES,
  what = "The input",
): { readonly text: string; readonly bytes: number } {
  const text = JSON.stringify(json);
  const bytes = Buffer.byteLength(text);
  if (bytes > limitBytes) throw new MillraceError("PAYLOAD_TOO_LARGE", { what, limitBytes });
  return { text, bytes };
}

/** As far as it is said: what is small counts as nothing. */
export function sizeOf(value: KeptValue): number {
  if ("blob" in value) return value.blob.bytes;
  if ("past" in value) return value.past.bytes;
  return value.bytes ?? 0;
}

function large(bytes: number, sha256: string, href: string): string {
  return JSON.stringify({ $large: { bytes, sha256, href } });
}
