/**
 * The name of one dispatch. The nonce is the owner's that committed it, so that the same numbers handed out again after
 * a store went back do not match. A node instance is a node id, with `[3]` for a map item and `@2` for a repeat round;
 * none of its characters is a colon.
 */
export interface Token {
  readonly nonce: string;
  readonly execution: string;
  readonly generation: number;
  readonly instance: string;
  readonly attempt: number;
  readonly delivery: number;
}

export function formatToken(token: Token): string {
  return `${token.nonce}:${token.execution}:${token.generation}:${token.instance}:${token.attempt}:${token.delivery}`;
}

/** Its end, behind the execution's name, for the first try of a node instance in the first generation: most never have another. */
export function firstTryOf(instance: string): string {
  return `:1:${instance}:1:1`;
}

export function parseToken(text: string): Token | undefined {
  // By hand: it is read for every result, and a list of its parts would be thrown away.
  const a = text.indexOf(":");
  const b = text.indexOf(":", a + 1);
  const c = text.indexOf(":", b + 1);
  const d = text.indexOf(":", c + 1);
  const e = text.indexOf(":", d + 1);
  if (a < 0 || b <= a || c <= b || d <= c || e <= d || text.includes(":", e + 1)) return undefined;
  const generation = Number(text.slice(b + 1, c));
  const attempt = Number(text.slice(d + 1, e));
  const delivery = Number(text.slice(e + 1));
  if (!isCount(generation) || !isCount(attempt) || !isCount(delivery)) return undefined;
  return {
    nonce: text.slice(0, a),
    execution: text.slice(a + 1, b),
    generation,
    instance: text.slice(c + 1, d),
    attempt,
    delivery,
  };
}

function isCount(n: number): boolean {
  return Number.isSafeInteger(n) && n > 0;
}
