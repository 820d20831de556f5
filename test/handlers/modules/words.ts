import * as z from "zod";
import { defineHandler } from "../../../src/handlers/define-handler.ts";

/** A module as a user writes it, named to a worker by its path. */
export const count = defineHandler({
  name: "words.count",
  config: z.object({ text: z.string(), atLeast: z.int().min(1).default(1) }),
  output: z.object({ words: z.int(), long: z.boolean() }),
  run: ({ text, atLeast }) => {
    const words = text.split(/\s+/).filter((word) => word.length >= atLeast).length;
    return { words, long: words > 100 };
  },
});

export const upper = defineHandler({
  name: "words.upper",
  config: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run: (config) => (config as { readonly text: string }).text.toUpperCase(),
});

export default [count];

export const somethingElse = { name: "not a handler" };
