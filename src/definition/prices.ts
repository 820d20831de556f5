import type { Prices } from "./workflow.ts";

/** `gpt-4o-mini=0.15/0.60`: US dollars for a million tokens that are read, and that are written. The model `*` is any other. */
function priceOf(word: string): { readonly model: string; readonly price: Prices[string] } | undefined {
  const [, model, input, output] = /^([^=\s]{1,256})=(\d{1,6}(?:\.\d+)?)\/(\d{1,6}(?:\.\d+)?)$/.exec(word) ?? [];
  return model === undefined ? undefined : { model, price: { input: Number(input), output: Number(output) } };
}

/** A list of such words; what is none is left out. */
export function pricesOf(words: readonly string[]): Prices {
  return Object.fromEntries(
    words.flatMap((word) => {
      const found = priceOf(word);
      return found === undefined ? [] : [[found.model, found.price]];
    }),
  );
}
