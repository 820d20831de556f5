import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { MUTANTS } from "./mutants.ts";

/**
 * Puts one deliberate bug into the production sources as they are loaded: `node --import ./test/mutants/hook.ts …` with
 * MILLRACE_MUTANT=name. Nothing in src/ knows of it, and a patch that no longer fits its file fails loudly.
 */
const name = process.env["MILLRACE_MUTANT"];
if (name !== undefined) {
  const mutant = MUTANTS.find((candidate) => candidate.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant ${name}`);
  registerHooks({
    load(url, context, next) {
      const patches = mutant.patches.filter((patch) => url.endsWith(`/src/${patch.file}`));
      if (patches.length === 0) return next(url, context);
      let source = readFileSync(fileURLToPath(url), "utf8");
      for (const { file, find, put } of patches) {
        if (source.split(find).length !== 2) throw new Error(`${name}: the patch does not fit ${file} exactly once`);
        source = source.replace(find, () => put);
      }
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}
