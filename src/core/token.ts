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

export function parseToken(text: string): Token | undefined {
  const parts = text.split(":");
  if (parts.length !== 6) return undefined;
  const generation = Number(parts[2]);
  const attempt = Number(parts[4]);
  const delivery = Number(parts[5]);
  if (!isCount(generation) || !isCount(attempt) || !isCount(delivery)) return undefined;
  return { nonce: parts[0]!, execution: parts[1]!, generation, instance: parts[3]!, attempt, delivery };
}

function isCount(n: number): boolean {
  return Number.isSafeInteger(n) && n > 0;
}
