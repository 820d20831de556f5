import { hash } from "node:crypto";

/** SHA-256 of a text, in hex. The only use of `node:crypto` below the engine: a pure function. */
export function contentHash(text: string): string {
  return hash("sha256", text, "hex");
}
