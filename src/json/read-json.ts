import { type Document, type ReadFault, unreadable } from "./document.ts";
import type { Json } from "./json.ts";
import { locateJson } from "./locate.ts";
import { type JsonFault, MAX_JSON_DEPTH, scanJson } from "./scan.ts";

/** Reads JSON text and finds what JSON.parse passes over in silence. Never throws. */
export function readJson(text: string): Document {
  const faults = scanJson(text).map(readFault);
  // Only a number that does not fit leaves the document readable.
  if (faults.some(({ code }) => code !== "NUMBER_OUT_OF_RANGE")) return unreadable(faults);
  return {
    value: JSON.parse(text) as Json,
    faults,
    locate: (pointers) => locateJson(text, pointers),
  };
}

function readFault({ kind, offset, pointer, text }: JsonFault): ReadFault {
  switch (kind) {
    case "syntax":
      return { code: "INVALID_JSON", details: { format: "JSON", reason: text }, pointer: "", offset };
    case "tooDeep":
      return { code: "JSON_TOO_DEEP", details: { limit: MAX_JSON_DEPTH }, pointer, offset };
    case "duplicateKey":
      return { code: "DUPLICATE_KEY", details: { key: text }, pointer, offset, hint: "Keep one of the two." };
    case "forbiddenKey":
      return { code: "FORBIDDEN_KEY", details: { key: text }, pointer, offset, hint: "Choose another name." };
    case "numberRange":
      return {
        code: "NUMBER_OUT_OF_RANGE",
        details: { field: text, reason: "does not fit a 64-bit floating point number" },
        pointer,
        offset,
      };
  }
}
