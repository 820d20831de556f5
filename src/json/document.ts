import type { ErrorCode, ErrorDetails } from "../errors/registry.ts";
import type { Json } from "./json.ts";
import type { Place } from "./locate.ts";

/** A text that was read, whichever language it is written in. */
export interface Document {
  /** Missing if the text is malformed: then there is nothing to look at further. */
  readonly value?: Json;
  readonly faults: readonly ReadFault[];
  /** The offsets of some values. Pointers to nothing are left out. */
  locate(pointers: Iterable<string>): Map<string, Place>;
}

type ReadCode =
  | "INVALID_JSON"
  | "DUPLICATE_KEY"
  | "JSON_TOO_DEEP"
  | "FORBIDDEN_KEY"
  | "YAML_UNSAFE"
  | "NUMBER_OUT_OF_RANGE";

/** A problem of the text itself. */
export type ReadFault = {
  [Code in ReadCode & ErrorCode]: {
    readonly code: Code;
    readonly details: ErrorDetails<Code>;
    readonly pointer: string;
    readonly offset: number;
    readonly hint?: string;
  };
}[ReadCode];

/** A document whose text could not be read. */
export function unreadable(faults: readonly ReadFault[]): Document {
  return { faults, locate: () => new Map() };
}
