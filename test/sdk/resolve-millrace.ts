import { registerHooks } from "node:module";

/** For a process that runs an example: `millrace` is this repository's source. */
const PLACES: Readonly<Record<string, string>> = {
  millrace: new URL("../../src/sdk/index.ts", import.meta.url).href,
  "millrace/testing": new URL("../../src/testing/index.ts", import.meta.url).href,
};

registerHooks({
  resolve: (specifier, context, next) => {
    const url = PLACES[specifier];
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
