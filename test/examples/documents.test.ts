import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { runExample } from "../../examples/documents/run-example.ts";

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
