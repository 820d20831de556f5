import type { Json } from "../json/json.ts";

/** What stands where a secret stood. */
const CONCEALED = "***";

/** Shorter secrets are not looked for: cutting "no" out of every text would destroy it, and such a secret is none. */
const MIN_CHARS = 4;
/** A number of fewer digits is a year, or a price. */
const MIN_DIGITS = 5;
/** A piece of base64 that is shorter turns up by chance. */
const MIN_BASE64_CHARS = 8;

const NO_FORMS: readonly string[] = [];
const NO_SECRETS: ReadonlySet<string> = new Set();

/**
 * The texts that must not appear in anything a worker reports: the secrets that a task's holes were filled with, and
 * what its handler asked to conceal. Known by position on the way in (see `fillHoles`), by value on the way out: a
 * server may send back what it was sent. Also found are the ways in which a text is commonly written elsewhere: escaped
 * in JSON, in a URL, in base64 as in a Basic authorization. A secret that a handler changed in another way is not.
 */
export class Concealment {
  #forms: readonly string[] = NO_FORMS;
  #secrets: ReadonlySet<string> = NO_SECRETS;

  add(secret: string): void {
    if (this.#secrets.has(secret)) return;
    this.#secrets = new Set([...this.#secrets, secret]);
    const forms = new Set([...this.#forms, ...formsOf(secret), ...formsOf(secret.trim())]);
    // The longest first, so that one secret within another leaves no remains.
    this.#forms = [...forms].sort((a, b) => b.length - a.length);
  }

  text(text: string): string {
    let left = text;
    for (const form of this.#forms) if (left.includes(form)) left = left.replaceAll(form, CONCEALED);
    return left;
  }

  /** Of plain data that `checkJson` has passed. The same value, if there is nothing to conceal in it. */
  json(value: Json): Json {
    return this.#forms.length === 0 ? value : this.#walk(value);
  }

  #walk(value: Json): Json {
    if (typeof value === "string") return this.text(value);
    if (typeof value === "number") return this.#isSecret(value) ? CONCEALED : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item: Json) => this.#walk(item));
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [this.text(key), this.#walk(member)]));
  }

  /** Digits that were sent as text may come back as a number; a longer one that has them in it is another. */
  #isSecret(value: number): boolean {
    const text = String(value);
    return text.length >= MIN_DIGITS && this.#secrets.has(text);
  }
}

function formsOf(secret: string): readonly string[] {
  if (secret.length < MIN_CHARS) return [];
  const inUrl = encodeURIComponent(secret.toWellFormed());
  // As forms and queries are written, which escape more: `!` and `~`, for instance.
  const inQuery = new URLSearchParams([["", secret]]).toString().slice(1);
  const escaped = JSON.stringify(secret).slice(1, -1);
  return [secret, escaped, inUrl, inUrl.replaceAll("%20", "+"), inQuery, ...base64FormsOf(Buffer.from(secret))];
}

/** A text within a longer one begins at any of three places of a base64 group; only whole characters of it are fixed. */
function base64FormsOf(bytes: Buffer): readonly string[] {
  const forms: string[] = [];
  for (const before of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const form = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    if (form.length >= MIN_BASE64_CHARS) forms.push(form, form.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return forms;
}
