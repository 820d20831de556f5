import { egressEntryOf } from "./egress-entry.ts";

/** What is wrong with a value that was given. */
export interface Unfit {
  readonly unfit: string;
  /** The word of a list that it is about, if not all of it. */
  readonly word?: string;
}

/** One setting: how it is named, what it may be, and what goes wrong at either end of it. */
export interface Setting<Value = unknown> {
  /** The environment variables that give it; the first that is set counts. */
  readonly env: readonly string[];
  /** The flag without its dashes. A secret has none: whoever lists processes would read it. */
  readonly flag?: string;
  readonly default: Value;
  readonly doc: string;
  /** Never shown. May also be given as the path of a file, in `<NAME>_FILE`. */
  readonly secret: boolean;
  /** The flag stands alone, and takes no value. */
  readonly isSwitch: boolean;
  /** Others read it too, and start all the same: what does not fit is told, and not heard. */
  readonly isShared: boolean;
  /** Its variables are prefixes: what follows in the environment is the name of a handler, in capitals. */
  readonly isByHandler: boolean;
  /** What it may be, for people. */
  readonly shape: string;
  /** Understands text of the environment or a flag, and values of a config file. */
  read(given: unknown): Value | Unfit;
}

/** The value of a setting. */
export type ValueOf<S> = S extends Setting<infer Value> ? Value : never;

interface Declared<Value> {
  readonly env: string | readonly string[];
  readonly flag?: string;
  readonly isShared?: true;
  readonly doc: string;
  readonly default: Value;
}

function setting<Value>(
  { env, ...declared }: Declared<Value>,
  shape: string,
  read: (given: unknown) => Value | Unfit,
  more: { readonly secret?: boolean; readonly isSwitch?: boolean; readonly isByHandler?: boolean } = {},
): Setting<Value> {
  const plain = { secret: false, isSwitch: false, isShared: false, isByHandler: false };
  return { ...plain, ...declared, ...more, env: [env].flat(), shape, read };
}

export function isUnfit(value: unknown): value is Unfit {
  return typeof value === "object" && value !== null && "unfit" in value;
}

export function text<Value extends string | undefined>(declared: Declared<Value>): Setting<string | Value> {
  return setting<string | Value>(declared, "text", readText);
}

/** A text that nobody may see. */
export function secret(declared: Omit<Declared<undefined>, "default" | "flag">): Setting<string | undefined> {
  return setting<string | undefined>({ ...declared, default: undefined }, "text", readText, { secret: true });
}

export function integer<Value extends number | undefined>(
  declared: Declared<Value> & { readonly min: number; readonly max: number },
): Setting<number | Value> {
  const { min, max, ...rest } = declared;
  return setting<number | Value>(rest, `integer, ${min} to ${max}`, (given) => {
    const value = readNumber(given);
    if (value === undefined || !Number.isInteger(value)) return { unfit: "must be an integer" };
    return value < min || value > max ? { unfit: `must be from ${min} to ${max}` } : value;
  });
}

/** A length of time; fractions are allowed, as in the format. */
export function seconds(declared: Declared<number> & { readonly min: number; readonly max: number }): Setting<number> {
  const { min, max, ...rest } = declared;
  return setting<number>(rest, `seconds, ${min} to ${max}`, (given) => {
    const value = readNumber(given);
    if (value === undefined) return { unfit: "must be a number of seconds, such as 5 or 0.5" };
    return value < min || value > max ? { unfit: `must be from ${min} to ${max} seconds` } : value;
  });
}

export function number(declared: Declared<number> & { readonly min: number; readonly max: number }): Setting<number> {
  const { min, max, ...rest } = declared;
  return setting<number>(rest, `number, ${min} to ${max}`, (given) => {
    const value = readNumber(given);
    if (value === undefined) return { unfit: "must be a number" };
    return value < min || value > max ? { unfit: `must be from ${min} to ${max}` } : value;
  });
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  on: true,
  false: false,
  "0": false,
  no: false,
  off: false,
};

export function boolean(declared: Declared<boolean>): Setting<boolean> {
  const read = (given: unknown): boolean | Unfit => {
    if (typeof given === "boolean") return given;
    const word = typeof given === "string" ? given.trim().toLowerCase() : "";
    return BOOLEANS[word] ?? { unfit: "must be true or false" };
  };
  return setting(declared, "true or false", read, { isSwitch: true });
}

/** As OpenTelemetry has it: only `true` is true. */
export function onlyTrue(declared: Declared<boolean>): Setting<boolean> {
  return setting<boolean>(declared, "true or false", (given) => {
    const word = String(given).trim().toLowerCase();
    return word === "true" || (word === "false" ? false : { unfit: "must be true or false" });
  });
}

export function choice<const Name extends string, Value extends Name>(
  declared: Declared<Value> & { readonly of: readonly Name[] },
): Setting<Name> {
  const { of, ...rest } = declared;
  return setting<Name>(rest, of.join(", "), (given) => {
    const found = typeof given === "string" ? of.find((name) => name === given.trim().toLowerCase()) : undefined;
    return found ?? { unfit: `must be one of ${of.join(", ")}` };
  });
}

/** Several of a few words, separated by commas. */
export function choices<const Name extends string>(
  declared: Declared<readonly Name[]> & { readonly of: readonly Name[] },
): Setting<readonly Name[]> {
  const { of, ...rest } = declared;
  return setting<readonly Name[]>(rest, `list of ${of.join(", ")}`, (given) => {
    const words = readList(given);
    if (words === undefined || words.length === 0 || words.some((word) => !(of as readonly string[]).includes(word))) {
      return { unfit: `must be a list of ${of.join(", ")}` };
    }
    return of.filter((name) => words.includes(name));
  });
}

/** Texts separated by commas. */
export function list(declared: Declared<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[]>(
    declared,
    "list",
    (given) => readList(given) ?? { unfit: "must be a list of texts" },
  );
}

/** Limits by name: `openai=50/second` is a rate, `gpu=4` a number of places. */
export function limitList(declared: Declared<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[]>(
    declared,
    "list of NAME=RATE/second, /minute or /hour, or NAME=PLACES, each with +NUMBERtokens/minute or without",
    (given) => {
      const words = readList(given);
      const bad = words?.find((word) => limitOf(word) === undefined);
      if (words !== undefined && bad === undefined) return words;
      const unfit = "must be a list such as openai=50/second+200000tokens/minute,gpu=4";
      return { unfit, ...(bad !== undefined && { word: bad }) };
    },
  );
}

export interface LimitWord {
  readonly name: string;
  readonly size: number;
  readonly per?: "second" | "minute" | "hour";
  readonly tokensPerMinute?: number;
}

const LIMIT_WORD =
  /^(\w[\w.#@-]{0,99})=(\d{1,6}(?:\.\d+)?)(?:\/(second|minute|hour))?(?:\+([1-9]\d{0,11})tokens\/minute)?$/;

/** What an entry of such a list says: with `per` a rate, else so many at a time; and how many LLM tokens. */
export function limitOf(word: string): LimitWord | undefined {
  const [, name, text, per, tokens] = LIMIT_WORD.exec(word) ?? [];
  const size = Number(text);
  if (name === undefined || size <= 0 || (per === undefined && !Number.isInteger(size))) return undefined;
  return {
    name,
    size,
    ...(per !== undefined && { per: per as "second" }),
    ...(tokens !== undefined && { tokensPerMinute: Number(tokens) }),
  };
}

const PRICE_WORD = /^[^=\s]{1,256}=\d{1,6}(?:\.\d+)?\/\d{1,6}(?:\.\d+)?$/;

/** What models cost: `gpt-4o-mini=0.15/0.60` is US dollars for a million tokens read and written. */
export function priceList(declared: Declared<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[]>(declared, "list of MODEL=INPUT/OUTPUT in USD for a million tokens", (given) => {
    const words = readList(given);
    const bad = words?.find((word) => !PRICE_WORD.test(word));
    if (words !== undefined && bad === undefined) return words;
    return { unfit: "must be a list such as gpt-4o-mini=0.15/0.60,*=5/15", ...(bad !== undefined && { word: bad }) };
  });
}

/** Places that may be called: hosts, `host:port` and CIDR blocks. In a text, spaces separate them too. */
export function egressList(declared: Declared<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[]>(declared, "list", (given) => {
    const words = readList(given)?.flatMap((word) => word.split(/\s+/).filter((part) => part !== ""));
    const bad = words?.find((word) => egressEntryOf(word) === undefined);
    if (words !== undefined && bad === undefined) return words;
    return { unfit: "must be a list such as api.internal:8443,10.0.0.0/8", ...(bad !== undefined && { word: bad }) };
  });
}

/** A list that nobody may see. */
export function secretList(declared: Omit<Declared<readonly string[]>, "flag">): Setting<readonly string[]> {
  const read = (given: unknown): readonly string[] | Unfit => readList(given) ?? { unfit: "must be a list of texts" };
  return setting<readonly string[]>(declared, "list", read, { secret: true });
}

/** Numbers by handler. `of` says what each may be. */
export function byHandler(
  declared: Omit<Declared<ByHandler>, "flag" | "default">,
  of: Setting<number>,
): Setting<ByHandler> {
  const read = (given: unknown): ByHandler | Unfit => {
    if (typeof given !== "object" || given === null)
      return { unfit: "must be an object with a number for each handler" };
    const values: Record<string, number> = {};
    for (const [handler, one] of Object.entries(given)) {
      const value = of.read(one);
      if (isUnfit(value)) return { unfit: `${value.unfit} for ${handler}` };
      values[inCapitals(handler)] = value;
    }
    return values;
  };
  const plain: Declared<ByHandler> = { ...declared, default: {} };
  return setting<ByHandler>(plain, `${of.shape}, by handler`, read, { isByHandler: true });
}

/** By the names of handlers in capitals. */
export type ByHandler = Readonly<Record<string, number>>;

/** The name of a handler as it stands in an environment variable: `ocr.text` is `OCR_TEXT`. */
function inCapitals(handler: string): string {
  return handler.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
}

/** What is set for a handler. */
export function ofHandler(values: ByHandler, handler: string): number | undefined {
  const name = inCapitals(handler);
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

function readText(given: unknown): string | Unfit {
  if (typeof given !== "string") return { unfit: "must be text" };
  const value = given.trim();
  return value === "" ? { unfit: "must not be empty" } : value;
}

function readNumber(given: unknown): number | undefined {
  if (typeof given === "number") return Number.isFinite(given) ? given : undefined;
  if (typeof given !== "string" || !/^\s*[+-]?(\d+\.?\d*|\.\d+)\s*$/.test(given)) return undefined;
  return Number(given);
}

function readList(given: unknown): readonly string[] | undefined {
  if (typeof given === "string") {
    return given
      .split(",")
      .map((word) => word.trim())
      .filter((word) => word !== "");
  }
  if (!Array.isArray(given) || given.some((word) => typeof word !== "string")) return undefined;
  return given as readonly string[];
}
