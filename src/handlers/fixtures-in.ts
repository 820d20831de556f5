import { readFile } from "node:fs/promises";
import { failed } from "./failed.ts";
import type { LlmProvider } from "./llm-client.ts";
import type { LlmFixtures } from "./llm-fixtures.ts";

/** The fixtures in a file, read at the first question. Without a file nothing is known. */
export function fixturesIn(file: string | undefined): LlmProvider {
  let loaded: Promise<LlmFixtures> | undefined;
  return { complete: async (request, call) => (await (loaded ??= load(file))).complete(request, call) };
}

async function load(file: string | undefined): Promise<LlmFixtures> {
  // What reads them needs a library, which most workers can do without.
  const { LlmFixtures: Fixtures } = await import("./llm-fixtures.ts");
  if (file === undefined) return new Fixtures([]);
  try {
    return new Fixtures(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, 500);
    throw failed("FIXTURES_INVALID", { file, reason }, { cause: error });
  }
}
