import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { runExample } from "../../examples/documents/run-example.ts";
import { NO_HANDLERS } from "../../src/definition/handlers.ts";
import { readDefinition } from "../../src/definition/read.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/documents");

test("the documents of the example come out as is known of them", async () => {
  // Offline, whatever whoever runs this has set.
  for (const name of ["OPENAI_API_KEY", "OPENAI_BASE_URL", "MILLRACE_ENV"]) vi.stubEnv(name, "");
  const output = mkdtempSync(join(tmpdir(), "millrace-documents-"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(output, { recursive: true, force: true });
  });
  const findings = await runExample(output);
  expect(findings.length).toBeGreaterThanOrEqual(30);
  expect(findings.filter(({ isRight }) => !isRight)).toEqual([]);
});

test("the measurement counts what came out as it was generated", async () => {
  const program = join(EXAMPLE, "measure.ts");
  const options = ["--count", "5", "--latency", "0", "--ocr", "0", "--memory"];
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", program, ...options]);
  expect(stdout).toMatch(/as generated and approved +5 of 5\ncalls of the model +5, at most \d in a second\n/);
  expect(stdout).toMatch(
    /documents per hour +[\d,]+\nP50, P95, P99 .*\nmemory, before and at most .*\nmemory per document/,
  );
});

test("what one model has read is not taken for what another would", () => {
  const text = readFileSync(join(EXAMPLE, "documents.yaml"), "utf8");
  const kept = (model: string) => {
    const handlers = { ...NO_HANDLERS, defaults: { modelOf: { "llm.extract": model } } };
    const { workflow } = readDefinition(text, { format: "yaml", handlers });
    const { config, cache } = workflow!.nodes.find(({ id }) => id === "llm_extract")!;
    return { model: config["model"], key: cache!.key };
  };
  expect([kept("one"), kept("other")]).toEqual([
    { model: "one", key: undefined },
    { model: "other", key: undefined },
  ]);
});
