import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { embedded, type EmbeddedEngine } from "../../src/sdk/index.ts";
import { Api, type DocumentResult } from "./api.ts";
import { generate } from "./generate.ts";
import type { InvoiceFields } from "./invoice-pdf.ts";

const HERE = import.meta.dirname;
const { values: given } = parseArgs({
  options: {
    /** Documents in all. */
    count: { type: "string", default: "500" },
    /** How long the model takes, in milliseconds. */
    latency: { type: "string", default: "1000" },
    /** Documents under way at a time. */
    "in-flight": { type: "string", default: "100" },
    /** Pages for OCR, which is measured apart. */
    ocr: { type: "string", default: "0" },
    memory: { type: "boolean", default: false },
  },
});
const [count, latency, inFlight, pages] = [given.count, given.latency, given["in-flight"], given.ocr].map(Number) as [
  number,
  number,
  number,
  number,
];

const folder = mkdtempSync(join(tmpdir(), "millrace-measure-"));
const files = join(folder, "in");
const documents = generate(files, count);
// In a process of its own: what it costs is not ours.
const model = spawn(process.execPath, [join(HERE, "llm-server.ts"), "--latency", String(latency)], {
  stdio: ["pipe", "pipe", "inherit"],
});
const [line] = (await once(model.stdout, "data")) as [Buffer];
Object.assign(process.env, {
  MILLRACE_FILES_FOLDER: pages > 0 && count === 0 ? join(HERE, "data") : files,
  MILLRACE_OUTPUT_FOLDER: join(folder, "out"),
  OPENAI_BASE_URL: String(line).trim(),
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
  await run(client, all[0]!.path);
  const before = memoryBytes();
  let peak = before;
  const sampler = setInterval(() => (peak = Math.max(peak, memoryBytes())), 50);
  let right = 0;
  const begunAtMs = performance.now();
  const latenciesMs = await pooled(all, inFlight, async ({ path, fields }) => {
    const { status, values } = await run(client, path);
    const isRight = Object.entries(fields).every(([name, value]) => isDeepStrictEqual(values[name], value));
    if (isRight && status === "approved") right++;
  });
  const seconds = (performance.now() - begunAtMs) / 1_000;
  clearInterval(sampler);
  const perDocument = (peak - before) / Math.min(inFlight, all.length) / 1024 ** 2;
  tell([
    ["documents", `${all.length}, ${inFlight} at a time, model ${latency} ms, ${given.memory ? "memory" : "SQLite"}`],
    ["as generated and approved", `${right} of ${all.length}`],
    ["in all", `${seconds.toFixed(1)} s`],
    ["documents per hour", Math.round((all.length / seconds) * 3_600).toLocaleString("en")],
    [
      "P50, P95, P99",
      [0.5, 0.95, 0.99].map((part) => `${(quantile(latenciesMs, part) / 1_000).toFixed(2)} s`).join(", "),
    ],
    ["memory, before and at most", `${mb(before)}, ${mb(peak)}`],
    ["memory per document in flight", `${perDocument.toFixed(2)} MB`],
  ]);
}

async function measureOcr(client: EmbeddedEngine, api: Api): Promise<void> {
  await api.request("/workflow", {
    name: "ocr only",
    nodes: [{ id: "result", handler: "ocr", config: { path: "bill.png" }, timeout_seconds: 600 }],
  });
  const begunAtMs = performance.now();
  const read = await pooled(Array.from({ length: pages }), pages, async () => {
    await (await client.startByName("ocr only")).result();
  });
  const seconds = (performance.now() - begunAtMs) / 1_000;
  tell([
    ["OCR", `${read.length} pages of bill.png in ${seconds.toFixed(1)} s`],
    ["pages per hour", Math.round((read.length / seconds) * 3_600).toLocaleString("en")],
    ["memory at the end", mb(memoryBytes())],
  ]);
}

async function run(client: EmbeddedEngine, path: string): Promise<DocumentResult> {
  const started = await client.startByName<{ readonly result: DocumentResult }>("documents", { path });
  return (await started.result()).result;
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
