import type { ErrorCode } from "../errors/registry.ts";
import type { Document } from "../json/document.ts";
import type { Json } from "../json/json.ts";
import { positionsOf } from "../json/locate.ts";
import { readJson } from "../json/read-json.ts";
import { checkValue } from "./check-value.ts";
import { MAX_DEFINITION_BYTES } from "./fields.ts";
import { type HandlerCatalogue, KnownHandlers, NO_HANDLERS } from "./handlers.ts";
import { definitionHash, loadDefinition } from "./load.ts";
import { type Problem, ProblemList } from "./problems.ts";
import { validate } from "./validate.ts";
import type { Workflow } from "./workflow.ts";

export interface ReadOptions {
  /** The handlers there are besides the built-in nodes. None by default. */
  readonly handlers?: HandlerCatalogue;
  /** Give line and column. On by default for text. */
  readonly positions?: boolean;
}

export interface DefinitionReport {
  /** The canonical form. There only if there are no errors. */
  readonly workflow?: Workflow;
  /** SHA-256 of the canonical form: the same content, the same hash. */
  readonly hash?: string;
  /**
   * The code of the refusal as a whole: INVALID_DEFINITION, or what made the text unreadable. Missing if there are no
   * errors.
   */
  readonly failure?: ErrorCode;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Problems beyond the number that is reported. */
  readonly omitted: number;
}

/** A language that definitions are written in. */
export interface Language {
  readonly name: "JSON" | "YAML";
  readonly limitBytes: number;
  /** What to do with a text that is too long for it. */
  readonly tooLong?: string;
  readonly parse: (text: string) => Document;
}

const JSON_LANGUAGE: Language = { name: "JSON", limitBytes: MAX_DEFINITION_BYTES, parse: readJson };

/** A definition in JSON. Here without YAML, whose parser takes as long to load as all of the rest. */
export function readJsonDefinition(source: string | Uint8Array, options: ReadOptions = {}): DefinitionReport {
  return readIn(JSON_LANGUAGE, source, options);
}

/** Reads, loads and checks a definition. Finds every problem at once, and never throws because of the text. */
export function readIn(language: Language, source: string | Uint8Array, options: ReadOptions): DefinitionReport {
  const { name: format, limitBytes, tooLong: hint } = language;
  const problems = new ProblemList();
  const tooLarge = typeof source === "string" ? isLongerThan(source, limitBytes) : source.byteLength > limitBytes;
  if (tooLarge) {
    const what = format === "YAML" ? "The YAML definition" : "The definition";
    problems.add("PAYLOAD_TOO_LARGE", "", { what, limitBytes }, { hint });
    return failed("PAYLOAD_TOO_LARGE", problems);
  }
  const text = typeof source === "string" ? source : decode(source);
  if (text === undefined) {
    problems.add("INVALID_JSON", "", { format, reason: "it is not UTF-8 text" });
    return failed("INVALID_JSON", problems);
  }
  return checkDocument(language.parse(text), text, options);
}

/** The text around a definition, and where its values are in it. */
export interface TextAround {
  readonly text: string;
  /** Of pointers into the definition. */
  readonly locate: Document["locate"];
}

/** Loads and checks a definition that somebody has parsed, or built, already; with the text it stands in, if there is one. */
export function checkDefinition(value: Json, options: ReadOptions = {}, around?: TextAround): DefinitionReport {
  const problems = new ProblemList();
  const failure = checkValue(value, problems);
  if (failure !== undefined) return failed(failure, problems, around);
  return report(value, options, problems, around);
}

function checkDocument(document: Document, text: string, options: ReadOptions): DefinitionReport {
  const problems = new ProblemList();
  for (const { code, pointer, details, offset, hint } of document.faults) {
    problems.add(code, pointer, details, { hint, offset });
  }
  if (document.value === undefined) {
    const first = document.faults[0]!;
    const positions = positionsOf(
      text,
      document.faults.map(({ offset }) => offset),
    );
    // Nothing can be located in a text that cannot be read; the faults bring their own offsets.
    const { errors, warnings } = problems.finish();
    const placed = errors.map((error, i) => ({ ...error, ...positions.get(document.faults[i]!.offset) }));
    return { failure: first.code, errors: placed, warnings, omitted: problems.omitted };
  }
  return report(
    document.value,
    options,
    problems,
    options.positions === false ? undefined : { locate: (pointers) => document.locate(pointers), text },
  );
}

function report(
  value: Json,
  { handlers: catalogue = NO_HANDLERS }: ReadOptions,
  problems: ProblemList,
  source?: TextAround,
): DefinitionReport {
  const handlers = new KnownHandlers(catalogue);
  const loaded = loadDefinition(value, handlers, problems);
  if (loaded !== undefined) validate(loaded, handlers, problems);
  const { errors, warnings } = problems.finish(source);
  const { omitted } = problems;
  if (errors.length > 0 || loaded === undefined) return { failure: "INVALID_DEFINITION", errors, warnings, omitted };
  return { workflow: loaded.workflow, hash: definitionHash(loaded.workflow), errors, warnings, omitted };
}

function failed(failure: ErrorCode, problems: ProblemList, source?: TextAround): DefinitionReport {
  return { failure, ...problems.finish(source), omitted: problems.omitted };
}

/** In UTF-8, without encoding 32 MiB only to measure them. */
function isLongerThan(text: string, limitBytes: number): boolean {
  if (text.length > limitBytes) return true;
  return text.length * 3 > limitBytes && Buffer.byteLength(text) > limitBytes;
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
