import type { Json } from "../../json/json.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { itemLines } from "./item-lines.ts";

/** Some items in a row, which are one batch of the server. */
export interface Segment {
  readonly number: number;
  /** The place of its first item among all. */
  readonly from: number;
  readonly count: number;
  /** Where they stand in the file. */
  readonly start: number;
  readonly end: number;
}

export interface SegmentSize {
  readonly items: number;
  readonly bytes: number;
}

/** A batch of the server is read anew whenever an item begins, so it is kept small. */
const SEGMENT_BYTES = 256 * 1024;
const MAX_LINE_BYTES = 1024 * 1024;
const WAVES = 20;

/** How the items that may be under way are shared out: so many segments at a time, each with so many. */
export interface Sharing {
  readonly lanes: number;
  readonly each: number;
  readonly size: SegmentSize;
}

/**
 * The end of a segment leaves some of its places empty while its last items run; with several at a time the others go on
 * meanwhile, and there are never more under way than were allowed.
 */
export function sharing(concurrency: number, total: number): Sharing {
  const lanes = concurrency >= 40 ? 4 : concurrency >= 8 ? 2 : 1;
  const each = Math.floor(concurrency / lanes);
  const most = Math.min(1_000, Math.max(50, each * WAVES));
  return { lanes, each, size: { items: Math.max(1, Math.min(most, Math.ceil(total / lanes))), bytes: SEGMENT_BYTES } };
}

/** How many items a file has. All of it is read before anything runs: what is no JSON is told with its line. */
export async function countItems(file: string, shown: string): Promise<number> {
  let count = 0;
  for await (const { text } of itemLines(file)) {
    count++;
    const reason = text.length > MAX_LINE_BYTES ? "longer than 1 MiB" : faultOf(text);
    if (reason !== undefined) throw new Failure(EXIT.invalid, `${shown}: item ${count} is ${reason}.`);
  }
  return count;
}

function faultOf(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `no JSON: ${(error as Error).message}`;
  }
}

/** The segments of what is left of a file, in order. */
export async function* segmentsOf(
  file: string,
  size: SegmentSize,
  after: { readonly number: number; readonly from: number; readonly start: number },
): AsyncGenerator<Segment, void> {
  let { number, from, start } = after;
  let count = 0;
  let end = start;
  for await (const line of itemLines(file, start)) {
    if (count > 0 && (count === size.items || line.end - start > size.bytes)) {
      yield { number, from, count, start, end };
      number++;
      from += count;
      start = end;
      count = 0;
    }
    count++;
    end = line.end;
  }
  if (count > 0) yield { number, from, count, start, end };
}

export async function itemsOf(file: string, { start, end }: Segment): Promise<Json[]> {
  const items: Json[] = [];
  for await (const { text } of itemLines(file, start, end)) items.push(JSON.parse(text) as Json);
  return items;
}
