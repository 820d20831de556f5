import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { verifyAuditLog } from "../../src/handlers/audit-log.ts";
import { embedded } from "../../src/sdk/index.ts";
import { Api, type DocumentResult, type Execution } from "./api.ts";

const HERE = import.meta.dirname;
const DATA = join(HERE, "data");

type Fields = Readonly<Record<string, unknown>>;

/** One thing that is known, and whether it came out so. */
export interface Finding {
  readonly document: string;
  readonly what: string;
  readonly isRight: boolean;
  readonly got: unknown;
}

interface Oracle {
  readonly misread: Readonly<Record<string, number>>;
  readonly values: Fields & { readonly rows: readonly Fields[] };
}

/**
 * The whole pipeline with the documents of this folder, offline: two invoices with known fields, a bank statement whose
 * scan misreads three amounts, and a file that is no document. What comes out is compared with what is known.
 */
export async function runExample(output: string): Promise<readonly Finding[]> {
  const told: { readonly type: string }[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      told.push(JSON.parse(Buffer.concat(chunks).toString()) as { type: string });
      response.end();
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  Object.assign(process.env, {
    MILLRACE_FILES_FOLDER: DATA,
    MILLRACE_OUTPUT_FOLDER: output,
    // A model of your own instead: set OPENAI_BASE_URL or OPENAI_API_KEY.
    MILLRACE_LLM_FIXTURES: join(HERE, "fixtures.json"),
  });
  const engine = await embedded({ dataDir: false, port: 0 });
  try {
    const api = new Api(engine.url!);
    await api.request("/workflow", readFileSync(join(HERE, "documents.yaml"), "utf8"));
    const notify_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const start = (path: string): Promise<string> => api.start("documents", { path, notify_url });
    const [azure, sammy, bill, rubbish] = [
      await start("AzureInterior.pdf"),
      await start("SammyMaystoneLinesTest.pdf"),
      await start("bill.png"),
      await start("LICENSE.invoice2data.MIT.md"),
    ];
    const findings = [
      ...invoiceFindings("AzureInterior", "approved", await api.wait(azure)),
      ...invoiceFindings("SammyMaystoneLinesTest", "accepted", await api.wait(sammy)),
      ...(await reviewFindings(api, bill)),
    ];
    const failed = await api.wait(rubbish);
    findings.push(
      finding("not a document", "failed", failed.status, "FAILED"),
      finding(
        "not a document",
        "told",
        told.map(({ type }) => type),
        ["document.failed"],
      ),
    );
    findings.push(...(await againFindings(api, start)));
    const { lines } = await verifyAuditLog(join(output, "audit.jsonl"));
    findings.push(
      finding("all", "lines of the audit log, unbroken", lines, 6),
      finding("all", "JSON files", readdirSync(join(output, "json")).length, 4),
      finding("all", "Parquet files", readdirSync(join(output, "parquet")).length, 4),
    );
    return findings;
  } finally {
    await engine.close();
    receiver.closeAllConnections();
    receiver.close();
  }
}

function finding(document: string, what: string, got: unknown, expected: unknown): Finding {
  return { document, what, isRight: isDeepStrictEqual(got, expected), got };
}

function resultOf({ nodes }: Execution): DocumentResult | undefined {
  return (nodes["result"] as { readonly output?: DocumentResult } | undefined)?.output ?? undefined;
}

/** Every field of the workflow that the publisher of the invoice has written down. */
function invoiceFindings(name: string, status: string, execution: Execution): Finding[] {
  const [expected] = JSON.parse(readFileSync(join(DATA, `${name}.json`), "utf8")) as [Fields];
  const { values = {}, status: got } = resultOf(execution) ?? {};
  const known = Object.keys(values).filter((field) => Object.hasOwn(expected, field) && field !== "lines");
  return [
    finding(name, "status", got, status),
    ...known.map((field) =>
      // Theirs is the name of a template there, which begins with the issuer's.
      field === "issuer"
        ? finding(name, field, String(expected[field]).startsWith(String(values[field])), true)
        : finding(name, field, values[field], expected[field]),
    ),
    finding(name, "lines", linesOf(values["lines"]), linesOf(expected["lines"] ?? expected["line_items"])),
  ];
}

/** What both sides say of a line; headings and notes between them are no lines. */
function linesOf(lines: unknown): readonly Fields[] {
  const names = ["item", "desc", "qty", "price_unit", "discount", "price_subtotal"];
  return ((lines ?? []) as readonly Fields[])
    .map((line) => Object.fromEntries(Object.entries(line).filter(([name]) => names.includes(name))))
    .filter((line) => Object.keys(line).length > 0);
}

/** The running balance exposes what the scan misread; a person corrects it, and nothing overwrites that. */
async function reviewFindings(api: Api, id: string): Promise<Finding[]> {
  const oracle = (JSON.parse(readFileSync(join(HERE, "oracle.json"), "utf8")) as Record<string, Oracle>)["bill.png"]!;
  const name = "bill.png";
  const waiting = await api.wait(id, ({ nodes }) => nodes["review_queue"]?.status === "WAITING");
  const { problems } = waiting.nodes["verdict"]!.output as DocumentResult;
  const exposed = problems.map(({ path }) => path);
  const review = await reviewOf(api, id);
  const rows = review.values["rows"] as readonly Fields[];
  // The person looks at the rows that were exposed, and at no other.
  const corrected = rows.map((row, index) => {
    const isExposed = exposed.includes(`/rows/${index}`);
    return isExposed ? { ...row, amount: oracle.values.rows[index]!["amount"] } : row;
  });
  await api.request(`/reviews/${encodeURIComponent(review.id)}`, { decision: "approve", data: { rows: corrected } });
  const { status, values, locks } = resultOf(await api.wait(id))!;
  return [
    finding(
      name,
      "rows that are exposed",
      exposed,
      Object.keys(oracle.misread).map((index) => `/rows/${index}`),
    ),
    finding(name, "status", status, "reviewed"),
    ...Object.entries(oracle.values).map(([field, value]) => finding(name, field, values[field], value)),
    finding(name, "locked", Object.keys(locks), ["rows"]),
  ];
}

async function reviewOf(api: Api, execution: string): Promise<{ readonly id: string; readonly values: Fields }> {
  const { items } = await api.request<{ items: { id: string; execution_id: string; values: Fields }[] }>("/reviews");
  return items.find(({ execution_id: id }) => id === execution)!;
}

/** What was read once is neither read nor asked again: it comes from the cache. */
async function againFindings(api: Api, start: (path: string) => Promise<string>): Promise<Finding[]> {
  const invoice = await api.wait(await start("AzureInterior.pdf"));
  const id = await start("bill.png");
  const scan = await api.wait(id, ({ nodes }) => nodes["review_queue"]?.status === "WAITING");
  await api.request(`/reviews/${encodeURIComponent((await reviewOf(api, id)).id)}`, { decision: "reject" });
  const { items } = await api.request<{ items: { name: string; limit: number }[] }>("/limits");
  return [
    finding("all", "calls of the model a second", items.find(({ name }) => name === "openai")?.limit, 50),
    finding("AzureInterior, again", "extraction", invoice.nodes["llm_extract"]!.reason, "cached"),
    finding("AzureInterior, again", "status", resultOf(invoice)?.status, "approved"),
    finding("bill.png, again", "text of the scan", scan.nodes["ocr_text"]!.reason, "cached"),
    finding("bill.png, again", "extraction", scan.nodes["llm_extract"]!.reason, "cached"),
    finding("bill.png, again", "status", resultOf(await api.wait(id))?.status, "rejected"),
  ];
}

if (process.argv[1] === import.meta.filename) {
  const output = process.argv[2] ?? mkdtempSync(join(tmpdir(), "millrace-documents-"));
  const findings = await runExample(output);
  for (const { document, what, isRight, got } of findings) {
    const shown = JSON.stringify(got) ?? "nothing";
    const value = shown.length > 60 ? `${shown.slice(0, 57)}…` : shown;
    process.stdout.write(`${isRight ? "ok   " : "WRONG"} ${document.padEnd(24)} ${what.padEnd(34)} ${value}\n`);
  }
  const wrong = findings.filter(({ isRight }) => !isRight).length;
  process.stdout.write(`\n${findings.length - wrong} of ${findings.length} as known; files in ${output}\n`);
  process.exitCode = wrong === 0 ? 0 : 1;
}
