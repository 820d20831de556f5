import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { Api, type DocumentResult, type Execution } from "../../examples/documents/api.ts";
import { type InvoiceFields, invoiceFields, invoicePdf } from "../../examples/documents/invoice-pdf.ts";
import { type LlmServer, startLlmServer, type Trouble } from "../../examples/documents/llm-server.ts";
import { verifyAuditLog } from "../../src/handlers/audit-log.ts";
import { serve, type TestServer } from "../../src/handlers/test-server.ts";
import { embedded, type EmbeddedEngine } from "../../src/sdk/index.ts";

/** The recovery matrix of document 002, section 4.4: each kind of failure, and what becomes of the document. */

const EXAMPLE = join(import.meta.dirname, "../../examples/documents");

let folder: string;
let llm: LlmServer;
let engine: EmbeddedEngine;
let api: Api;
/** What the model does to the requests of one test, from the first. */
let trouble: (request: number) => Trouble | undefined = () => undefined;
let asked = 0;
let invoices = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-recovery-"));
  mkdirSync(join(folder, "in"));
  llm = await startLlmServer({ trouble: () => trouble(++asked) });
  vi.stubEnv("MILLRACE_FILES_FOLDER", join(folder, "in"));
  vi.stubEnv("MILLRACE_OUTPUT_FOLDER", join(folder, "out"));
  vi.stubEnv("OPENAI_BASE_URL", llm.url);
  engine = await embedded({ dataDir: false, port: 0, concurrency: 8 });
  api = new Api(engine.url!);
  // What is loaded at the first call is loaded before anything is timed.
  await submit("warm", {});
  expect(await api.wait(await start("warm", invoice("warm.pdf")))).toMatchObject({ status: "COMPLETED" });
});

afterAll(async () => {
  await engine.close();
  llm.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(() => {
  asked = 0;
  trouble = () => undefined;
});

/** The pipeline of the example under another name, with another node for the model. */
async function submit(name: string, extract: object, more: object = {}): Promise<void> {
  const written = parse(readFileSync(join(EXAMPLE, "documents.yaml"), "utf8")) as { nodes: { id: string }[] };
  const nodes = written.nodes.map((node) => (node.id === "llm_extract" ? { ...node, ...extract } : node));
  await api.request("/workflow", { ...written, ...more, name, nodes });
}

/** Another one each time: what the model has read once it is not asked again. */
function invoice(path: string, changes: Partial<InvoiceFields> = {}): string {
  writeFileSync(join(folder, "in", path), invoicePdf({ ...invoiceFields(++invoices), ...changes }));
  return path;
}

function start(workflow: string, path: string, more: object = {}): Promise<string> {
  return api.start(workflow, { path, ...more });
}

function statusOf({ nodes }: Execution, id: string): unknown {
  return nodes[id]?.status;
}

function statusesOf(execution: Execution, ...ids: readonly string[]): readonly unknown[] {
  return ids.map((id) => statusOf(execution, id));
}

function receiver(): Promise<TestServer> {
  return serve((_, response) => response.end());
}

function told({ requests }: TestServer): readonly { readonly type: string; readonly data: unknown }[] {
  return requests.map(({ body }) => JSON.parse(body) as { type: string; data: unknown });
}

test("step timeout: tried again, and what came before is kept", async () => {
  await submit("timeout", { timeout_seconds: 2, retry: { max_attempts: 5, base_delay_seconds: 0.01 } });
  trouble = (request) => (request === 1 ? { kind: "silence" } : undefined);
  const execution = await api.wait(await start("timeout", invoice("timeout.pdf")));
  expect(execution).toMatchObject({ status: "COMPLETED", nodes: { pdf_text: { attempt: 1 }, ingest: { attempt: 1 } } });
  expect(execution.nodes["llm_extract"]!.attempt).toBeGreaterThanOrEqual(2);
});

test("rate limit: waits as long as the model asks for", async () => {
  await submit("rate limit", { retry: { max_attempts: 2, base_delay_seconds: 0 } });
  trouble = (request) => (request === 1 ? { kind: "status", status: 429, retryAfter: "1.5" } : undefined);
  const before = llm.requestedAtMs.length;
  const execution = await api.wait(await start("rate limit", invoice("rate.pdf")));
  expect(execution).toMatchObject({ status: "COMPLETED", nodes: { llm_extract: { attempt: 2 } } });
  const [first, second] = llm.requestedAtMs.slice(before);
  // Not sooner; by two clocks.
  expect(second! - first!).toBeGreaterThan(1_400);
});

test("server error: tried again; when it lasts the document fails, and a retry goes on from there", async () => {
  await submit("server error", { retry: { max_attempts: 3, base_delay_seconds: 0 } });
  trouble = (request) => (request <= 2 ? { kind: "status", status: 503 } : undefined);
  const mended = await api.wait(await start("server error", invoice("mended.pdf")));
  expect(mended).toMatchObject({ status: "COMPLETED", nodes: { llm_extract: { attempt: 3 } } });

  trouble = () => ({ kind: "status", status: 500 });
  const id = await start("server error", invoice("down.pdf"));
  const down = await api.wait(id);
  expect(down).toMatchObject({
    status: "FAILED",
    nodes: {
      llm_extract: { status: "FAILED", attempt: 3, error: { code: "HTTP_500" } },
      failure: { status: "COMPLETED" },
    },
  });
  trouble = () => undefined;
  await api.request(`/executions/${id}/retry`, {});
  const again = await api.wait(id);
  expect(again).toMatchObject({ status: "COMPLETED", nodes: { result: { output: { status: "approved" } } } });
  expect(again.nodes["pdf_text"]).toEqual(down.nodes["pdf_text"]);
});

test("validation failure: not tried again, but shown to a person", async () => {
  await submit("validation", {});
  const id = await start("validation", invoice("sum.pdf", { amount: 1 }));
  const waiting = await api.wait(id, (execution) => statusOf(execution, "review_queue") === "WAITING");
  expect(waiting.nodes["validate"]).toMatchObject({ status: "COMPLETED", attempt: 1 });
  const { problems } = waiting.nodes["verdict"]!.output as DocumentResult;
  expect(problems.map(({ rule }) => rule)).toEqual(["sum"]);
  const { items } = await api.request<{ items: { id: string; execution_id: string }[] }>("/reviews");
  const review = items.find(({ execution_id: of }) => of === id)!;
  await api.request(`/reviews/${encodeURIComponent(review.id)}`, { decision: "reject" });
  const rejected = await api.wait(id);
  expect(rejected).toMatchObject({ status: "COMPLETED", nodes: { result: { output: { status: "rejected" } } } });
  expect(statusesOf(rejected, "output_json", "output_parquet", "audit_log")).toEqual([
    "SKIPPED",
    "SKIPPED",
    "COMPLETED",
  ]);
});

test("invalid document: not tried again, failed, and somebody is told", async () => {
  await submit("invalid", {});
  writeFileSync(join(folder, "in", "broken.pdf"), "%PDF-1.4 and nothing else");
  const hook = await receiver();
  const failed = await api.wait(await start("invalid", "broken.pdf", { notify_url: hook.url }));
  expect(failed).toMatchObject({
    status: "FAILED",
    nodes: { pdf_text: { status: "FAILED", attempt: 1, error: { code: "DOCUMENT_INVALID", retryable: false } } },
  });
  expect(told(hook)).toMatchObject([
    { type: "document.failed", data: { path: "broken.pdf", pdf_text: { code: "DOCUMENT_INVALID" } } },
  ]);
  expect(asked).toBe(0);
});

test("workflow timeout: what was done is kept, somebody is told, and it can go on", async () => {
  await submit("documents", { retry: { max_attempts: 1 } }, { timeout_seconds: 6 });
  await api.request("/workflow", readFileSync(join(EXAMPLE, "watched.yaml"), "utf8"));
  trouble = () => ({ kind: "silence" });
  const hook = await receiver();
  const outer = await api.wait(await start("watched documents", invoice("slow.pdf"), { notify_url: hook.url }));
  expect(outer).toMatchObject({
    status: "FAILED",
    nodes: { process: { status: "FAILED" }, alarm: { status: "COMPLETED" } },
  });
  expect(told(hook)).toMatchObject([{ type: "document.stuck", data: { path: "slow.pdf" } }]);

  const inner = (outer.nodes["process"] as unknown as { child_execution_id: string }).child_execution_id;
  const stuck = await api.wait(inner);
  expect(stuck).toMatchObject({
    status: "FAILED",
    error: { code: "WORKFLOW_TIMEOUT" },
    nodes: { pdf_text: { status: "COMPLETED" } },
  });
  trouble = () => undefined;
  await api.request(`/executions/${inner}/retry`, {});
  const resumed = await api.wait(inner);
  expect(resumed).toMatchObject({ status: "COMPLETED", nodes: { result: { output: { status: "approved" } } } });
  expect(resumed.nodes["pdf_text"]).toEqual(stuck.nodes["pdf_text"]);
});

test("whatever went wrong on the way, every document has one file and one line of the log", async () => {
  const { lines } = await verifyAuditLog(join(folder, "out", "audit.jsonl"));
  const files = readdirSync(join(folder, "out", "json"));
  expect(readdirSync(join(folder, "out", "parquet"))).toHaveLength(files.length);
  // Those that failed, for now or for good, and the one that was rejected have a line and no file.
  expect(lines).toBe(files.length + 3);
  expect(files.some((name) => name.endsWith(".tmp"))).toBe(false);
});
