import { type ErrorCode, type ErrorDetails, errorKind, errorMessage } from "../errors/registry.ts";
import type { Document } from "../json/document.ts";
import { positionsOf, withParents } from "../json/locate.ts";

/** One thing that is wrong, or looks wrong, with a definition. */
export interface Problem {
  readonly code: ErrorCode;
  /** JSON pointer into the document as it was written, not into the canonical form. */
  readonly path: string;
  /** Of a file: where to look, both from 1. */
  readonly line?: number;
  readonly column?: number;
  /** What is wrong. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

interface Draft {
  readonly code: ErrorCode;
  readonly path: string;
  readonly message: string;
  readonly hint: string | undefined;
  /** The key is at fault, not the value behind it. */
  readonly atKey: boolean;
  readonly offset: number | undefined;
}

export interface ProblemPlace {
  readonly hint?: string | undefined;
  readonly atKey?: boolean;
  readonly offset?: number;
}

/**
 * Enough for every real mistake. A generated document that is wrong in each of its million edges must not become a
 * report of a gigabyte.
 */
export const MAX_PROBLEMS = 1_000;

/** Collects problems; positions are looked up once, at the end, and only if there are any. */
export class ProblemList {
  readonly #errors: Draft[] = [];
  readonly #warnings: Draft[] = [];
  /** Both the text and the field may find fault with one number. */
  readonly #oddNumbers = new Set<string>();
  #errorCount = 0;
  #warningCount = 0;

  /** A code of kind `warning` becomes a warning, any other an error. */
  add<Code extends ErrorCode>(code: Code, path: string, details: ErrorDetails<Code>, place: ProblemPlace = {}): void {
    if (code === "NUMBER_OUT_OF_RANGE") {
      if (this.#oddNumbers.has(path)) return;
      this.#oddNumbers.add(path);
    }
    const isWarning = errorKind(code) === "warning";
    if (isWarning) this.#warningCount++;
    else this.#errorCount++;
    const drafts = isWarning ? this.#warnings : this.#errors;
    if (drafts.length >= MAX_PROBLEMS) return;
    const { hint, atKey = false, offset } = place;
    drafts.push({ code, path, message: errorMessage(code, details), hint, atKey, offset });
  }

  get errorCount(): number {
    return this.#errorCount;
  }

  /** False once more problems of this kind would only be counted: hints for them need not be looked for. */
  get wantsErrors(): boolean {
    return this.#errors.length < MAX_PROBLEMS;
  }

  /** How many problems are not in the lists because there were too many. */
  get omitted(): number {
    return this.#errorCount - this.#errors.length + (this.#warningCount - this.#warnings.length);
  }

  /** The problems in the order of the document. Without a document they stay in the order they were found. */
  finish(source?: { readonly locate: Document["locate"]; readonly text: string }): {
    errors: readonly Problem[];
    warnings: readonly Problem[];
  } {
    if (source === undefined || this.#errors.length + this.#warnings.length === 0) {
      return {
        errors: this.#errors.map((draft) => problem(draft)),
        warnings: this.#warnings.map((draft) => problem(draft)),
      };
    }
    const drafts = [...this.#errors, ...this.#warnings];
    const places = source.locate(withParents(drafts.map(({ path }) => path)));
    const offsets = new Map<Draft, number>();
    for (const draft of drafts) offsets.set(draft, draft.offset ?? offsetOf(draft, places));
    const positions = positionsOf(source.text, offsets.values());
    const sorted = (list: readonly Draft[]): readonly Problem[] =>
      [...list]
        .sort((a, b) => offsets.get(a)! - offsets.get(b)!)
        .map((draft) => problem(draft, positions.get(offsets.get(draft)!)));
    return { errors: sorted(this.#errors), warnings: sorted(this.#warnings) };
  }
}

function problem({ code, path, message, hint }: Draft, position?: { line: number; column: number }): Problem {
  return { code, path, ...position, message, ...(hint === undefined ? {} : { hint }) };
}

/** A pointer to something that is missing is shown at the object that should have it. */
function offsetOf({ path, atKey }: Draft, places: ReturnType<Document["locate"]>): number {
  let pointer = path;
  for (;;) {
    const place = places.get(pointer);
    if (place !== undefined) return atKey && pointer === path ? place.key : place.value;
    if (pointer === "") return 0;
    pointer = pointer.slice(0, pointer.lastIndexOf("/"));
  }
}
