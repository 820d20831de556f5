import { extname } from "node:path";
import { registerHooks } from "node:module";

/** What a workflow file imports from us, and where that is in this very package. */
const PARTS: Readonly<Record<string, string>> = {
  millrace: "../../sdk/index",
  "millrace/testing": "../../testing/index",
};

let isRegistered = false;

/**
 * Lets a workflow file import "millrace" also where it is not installed: in a checkout, with npx, in a folder that
 * `init` has just made. An installed one comes first.
 */
export function offerOwnPackage(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve: (specifier, context, next) => {
      const own = Object.hasOwn(PARTS, specifier) ? PARTS[specifier] : undefined;
      if (own === undefined) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        // Built, this file and that one are .js; from the sources both are .ts.
        const url = new URL(`${own}${extname(import.meta.url)}`, import.meta.url).href;
        return { url, shortCircuit: true };
      }
    },
  });
}
