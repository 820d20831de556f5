import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../handlers/test-folder.ts";
import { testCall } from "../handlers/test-server.ts";
import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import { readSettings } from "../settings/read-settings.ts";
import { openBuiltins } from "./worker-options.ts";

async function run(handler: string, config: Json, env: Readonly<Record<string, string>>): Promise<Json> {
  const builtins = openBuiltins(readSettings({ env }).settings, nodeHost, false);
  onTestFinished(() => builtins.close());
  return builtins.handlers.get(handler)!(testCall(config));
}

const SCHEMA = { type: "object", required: ["total"], properties: { total: { type: "number" } } };
const QUESTIONS = [
  ["llm", { prompt: "Total?", output_schema: SCHEMA }],
  ["llm.extract", { text: "Total: 7", schema: SCHEMA }],
] as const;

test.each(QUESTIONS)("without a model %s makes an answer up, but never in production", async (handler, config) => {
  expect(await run(handler, config, { MILLRACE_ENV: "test" })).toBeDefined();
  await expect(run(handler, config, { MILLRACE_ENV: "prod" })).rejects.toMatchObject({
    code: "SECRET_MISSING",
    retryable: false,
    message: expect.stringContaining("OPENAI_API_KEY") as string,
  });
});

test.each(QUESTIONS)("what the config of %s gives as its mock counts in production", async (handler, config) => {
  expect(await run(handler, { ...config, mock: { total: 1 } }, { MILLRACE_ENV: "prod" })).toEqual({ total: 1 });
});

test("fixtures that were named answer in production, and say that they did", async () => {
  const file = join(testFolder(), "fixtures.json");
  writeFileSync(
    file,
    JSON.stringify([{ match: ["Total"], fields: { total: { pattern: "Total: (\\d+)", type: "number" } } }]),
  );
  const env = { MILLRACE_ENV: "prod", MILLRACE_LLM_FIXTURES: file };
  const answer = await run("llm.extract", { text: "Total: 7", schema: SCHEMA }, env);
  expect(answer).toMatchObject({ values: { total: 7 }, model: "fixtures" });
});
