import { hash } from "node:crypto";

/** SHA-256 of a text, in hex. The only built-in module that the pure folders use: as a function it is pure too. */
export function contentHash(text: string): string {
  return hash("sha256", text, "hex");
}
