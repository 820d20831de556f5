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
  const [nonce, execution, generation, instance, attempt, delivery] = parts as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const numbers = [Number(generation), Number(attempt), Number(delivery)];
  if (!numbers.every((n) => Number.isSafeInteger(n) && n > 0)) return undefined;
  return {
    nonce,
    execution,
    generation: Number(generation),
    instance,
    attempt: Number(attempt),
    delivery: Number(delivery),
  };
}
