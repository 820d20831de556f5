import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type InvoiceFields, invoiceFields, invoicePdf } from "./invoice-pdf.ts";

/** Writes invoices as PDFs, and beside them a line for each: with the fields it has, and as an item of a batch. */
export function generate(folder: string, count: number): readonly { path: string; fields: InvoiceFields }[] {
  mkdirSync(folder, { recursive: true });
  const all = Array.from({ length: count }, (_, index) => {
    const fields = invoiceFields(index + 1);
    const path = `${fields.invoice_number}.pdf`;
    writeFileSync(join(folder, path), invoicePdf(fields));
    return { path, fields };
  });
  writeFileSync(join(folder, "expected.jsonl"), all.map((each) => `${JSON.stringify(each)}\n`).join(""));
  writeFileSync(join(folder, "items.jsonl"), all.map(({ path }) => `${JSON.stringify({ path })}\n`).join(""));
  return all;
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({
    options: { count: { type: "string", default: "100" }, folder: { type: "string", default: "generated" } },
  });
  const made = generate(values.folder, Number(values.count));
  process.stdout.write(`${made.length} invoices in ${values.folder}, and what they say in expected.jsonl\n`);
}
