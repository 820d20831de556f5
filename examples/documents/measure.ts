import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { embedded, type EmbeddedEngine } from "../../src/sdk/index.ts";
import { Api, type DocumentResult } from "./api.ts";
import { generate } from "./generate.ts";
import type { LlmCalls } from "./llm-server.ts";
import { type InvoiceFields, invoiceFields, invoicePdf } from "./invoice-pdf.ts";

const HERE = import.meta.dirname;
const { values: given } = parseArgs({
  options: {
    /** Documents in all; 0 leaves them out. */
    count: { type: "string", default: "5000" },
    /** How long the model takes, in milliseconds. */
    latency: { type: "string", default: "1000" },
    /** Documents under way at a time. */
    "in-flight": { type: "string", default: "100" },
    /** Calls of the model a second; 0 is as many as there are. */
    limit: { type: "string", default: "50" },
    /** Pages for OCR, which is measured apart; 0 leaves them out. */
    ocr: { type: "string", default: "50" },
    memory: { type: "boolean", default: false },
  },
});
const count = Number(given.count);
const latency = Number(given.latency);
const inFlight = Number(given["in-flight"]);
const limit = Number(given.limit);
const pages = Number(given.ocr);

const folder = mkdtempSync(join(tmpdir(), "millrace-measure-"));
const files = join(folder, "in");
const documents = generate(files, count);
const WARM_UP = "warm-up.pdf";
writeFileSync(join(files, WARM_UP), invoicePdf(invoiceFields(count + 1)));
copyFileSync(join(HERE, "data/bill.png"), join(files, "bill.png"));
// In a process of its own: what it costs is not ours.
const model = spawn(process.execPath, [join(HERE, "llm-server.ts"), "--latency", String(latency)], {
  stdio: ["pipe", "pipe", "inherit"],
});
const [line] = (await once(model.stdout, "data")) as [Buffer];
const modelUrl = String(line).trim();
Object.assign(process.env, {
  MILLRACE_FILES_FOLDER: files,
  MILLRACE_OUTPUT_FOLDER: join(folder, "out"),
  MILLRACE_LIMITS: `openai=${limit === 0 ? 100_000 : limit}/second`,
  OPENAI_BASE_URL: modelUrl,
});
const engine = await embedded({
  dataDir: given.memory ? false : join(folder, "data"),
  port: 0,
  // A task that waits for the model takes a slot and nothing else.
  concurrency: inFlight * 2,
});
try {
  const api = new Api(engine.url!);
  await api.request("/workflow", readFileSync(join(HERE, "documents.yaml"), "utf8"));
  if (count > 0) await measureDocuments(engine, documents);
  if (pages > 0) await measureOcr(engine, api);
} finally {
  await engine.close();
  model.kill();
  rmSync(folder, { recursive: true, force: true });
}

async function measureDocuments(
  client: EmbeddedEngine,
  all: readonly { readonly path: string; readonly fields: InvoiceFields }[],
): Promise<void> {
  // Loads what is loaded at the first call.
  await run(client, WARM_UP);
  const keptBefore = keptBytes();
  const before = memoryBytes();
  let peak = before;
  const sampler = setInterval(() => (peak = Math.max(peak, memoryBytes())), 50);
  const wrong: string[] = [];
  const begunAtMs = performance.now();
  const latenciesMs = await pooled(all, inFlight, async ({ path, fields }) => {
    const found = await run(client, path).catch((error: unknown) => String(error));
    if (typeof found === "string") {
      wrong.push(`${path}: ${found}`);
      return;
    }
    const { status, values } = found;
    const misread = Object.entries(fields).filter(([name, value]) => !isDeepStrictEqual(values[name], value));
    if (misread.length > 0 || status !== "approved") wrong.push(`${path}: ${status}, ${misread.join(" ")}`);
  });
  const seconds = (performance.now() - begunAtMs) / 1_000;
  clearInterval(sampler);
  const { calls, most_in_a_second: most } = (await (await fetch(`${modelUrl}/calls`)).json()) as LlmCalls;
  const perDocument = (peak - before) / Math.min(inFlight, all.length) / 1024 ** 2;
  tell([
    ["documents", `${all.length}, ${inFlight} at a time, ${given.memory ? "memory" : "SQLite"}`],
    ["model", `${latency} ms a call, limited to ${limit === 0 ? "nothing" : `${limit}/s and ${limit} at once`}`],
    ["as generated and approved", `${all.length - wrong.length} of ${all.length}`],
    ...wrong.slice(0, 10).map((each) => ["wrong", each] as const),
    ["calls of the model", `${calls - 1}, at most ${most} in a second`],
    ["in all", `${seconds.toFixed(1)} s`],
    ["documents per hour", Math.round((all.length / seconds) * 3_600).toLocaleString("en")],
    [
      "P50, P95, P99",
      [0.5, 0.95, 0.99].map((part) => `${(quantile(latenciesMs, part) / 1_000).toFixed(2)} s`).join(", "),
    ],
    ["memory, before and at most", `${mb(before)}, ${mb(peak)}`],
    ["memory per document in flight", `${perDocument.toFixed(2)} MB`],
    ["of it still in use, before and in the end", `${mb(keptBefore)}, ${mb(keptBytes())}`],
  ]);
  if (wrong.length > 0) process.exitCode = 1;
}

async function measureOcr(client: EmbeddedEngine, api: Api): Promise<void> {
  await api.request("/workflow", {
    name: "ocr only",
    nodes: [{ id: "result", handler: "ocr", config: { path: "bill.png" }, timeout_seconds: 600 }],
  });
  const before = memoryBytes();
  let peak = before;
  const sampler = setInterval(() => (peak = Math.max(peak, memoryBytes())), 50);
  const texts = new Set<string>();
  const begunAtMs = performance.now();
  const read = await pooled(Array.from({ length: pages }), pages, async () => {
    const { result } = await (
      await client.startByName<{ readonly result: { readonly text: string } }>("ocr only")
    ).result();
    texts.add(result.text);
  });
  const seconds = (performance.now() - begunAtMs) / 1_000;
  clearInterval(sampler);
  tell([
    [
      "OCR",
      `${read.length} pages of bill.png in ${seconds.toFixed(1)} s, ${texts.size === 1 ? "all" : "not all"} read alike`,
    ],
    ["pages per hour", Math.round((read.length / seconds) * 3_600).toLocaleString("en")],
    ["memory, before and at most", `${mb(before)}, ${mb(peak)}`],
  ]);
}

async function run(client: EmbeddedEngine, path: string): Promise<DocumentResult> {
  const started = await client.startByName<{ readonly result: DocumentResult }>("documents", { path });
  // One that went to a person would wait for ever.
  return (await started.result({ timeout: "5m" })).result;
}

/** Does the work for each, so many at a time; how long each took, in milliseconds. */
async function pooled<Each>(
  all: readonly Each[],
  atOnce: number,
  work: (each: Each) => Promise<void>,
): Promise<readonly number[]> {
  const tookMs: number[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < all.length) {
      const each = all[next++]!;
      const startedAtMs = performance.now();
      await work(each);
      tookMs.push(performance.now() - startedAtMs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, lane));
  return tookMs.toSorted((one, other) => one - other);
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? 0;
}

/** What the heap holds that somebody can still reach: most of what a process takes is only not yet given back. */
function keptBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

function memoryBytes(): number {
  return process.memoryUsage.rss();
}

function mb(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MB`;
}

function tell(rows: readonly (readonly [string, string])[]): void {
  for (const [name, value] of rows) process.stdout.write(`${name.padEnd(32)} ${value}\n`);
  process.stdout.write("\n");
}
