/** Fields that a generated invoice is known to have, by the names of the workflow. */
export interface InvoiceFields {
  readonly document_type: "invoice";
  readonly issuer: string;
  readonly invoice_number: string;
  readonly date: string;
  readonly date_due: string;
  readonly currency: string;
  readonly amount_untaxed: number;
  readonly amount_tax: number;
  readonly amount: number;
  readonly lines: readonly {
    readonly code: string;
    readonly qty: number;
    readonly price_unit: number;
    readonly price_subtotal: number;
  }[];
}

const ISSUERS = ["Alder & Sons", "Birch Supplies", "Cedar Office", "Dogwood Freight", "Elm Hardware"];
const CURRENCIES = ["USD", "EUR", "CAD"];

/** The n-th invoice: always the same for the same number. */
export function invoiceFields(n: number): InvoiceFields {
  const random = numbers(n);
  const pick = (count: number): number => Math.floor(random() * count);
  const lines = Array.from({ length: 1 + pick(8) }, () => {
    const [qty, cents] = [1 + pick(20), 100 + pick(50_000)];
    return { code: `P-${1_000 + pick(9_000)}`, qty, price_unit: cents / 100, price_subtotal: (qty * cents) / 100 };
  });
  const net = Math.round(lines.reduce((sum, line) => sum + line.price_subtotal * 100, 0));
  const tax = Math.round(net * 0.15);
  const date = new Date(Date.UTC(2024, pick(24), 1 + pick(28)));
  return {
    document_type: "invoice",
    issuer: ISSUERS[pick(ISSUERS.length)]!,
    invoice_number: `INV-${String(n).padStart(6, "0")}`,
    date: day(date),
    date_due: day(new Date(date.getTime() + 30 * 86_400_000)),
    currency: CURRENCIES[pick(CURRENCIES.length)]!,
    amount_untaxed: net / 100,
    amount_tax: tax / 100,
    amount: (net + tax) / 100,
    lines,
  };
}

/** An invoice as a PDF of one page. */
export function invoicePdf(fields: InvoiceFields): Buffer {
  return textPdf([
    "GENERATED INVOICE",
    `From: ${fields.issuer}`,
    `Number: ${fields.invoice_number}`,
    `Date: ${fields.date}`,
    `Due: ${fields.date_due}`,
    `Currency: ${fields.currency}`,
    ...fields.lines.map(
      ({ code, qty, price_unit: price, price_subtotal: total }) =>
        `Item ${code} ${qty} x ${price.toFixed(2)} = ${total.toFixed(2)}`,
    ),
    `Net: ${fields.amount_untaxed.toFixed(2)}`,
    `Tax: ${fields.amount_tax.toFixed(2)}`,
    `Total: ${fields.amount.toFixed(2)}`,
  ]);
}

/** The least that a PDF needs: five objects, where they begin, and where that is written. */
function textPdf(lines: readonly string[]): Buffer {
  const shown = lines.map((line) => `(${line.replaceAll(/[\\()]/g, String.raw`\$&`)}) Tj T*`);
  const page = `BT /F1 11 Tf 14 TL 56 780 Td\n${shown.join("\n")}\nET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${Buffer.byteLength(page, "latin1")} >>\nstream\n${page}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let file = "%PDF-1.4\n";
  const starts = objects.map((object, index) => {
    const start = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return start;
  });
  const entries = starts.map((start) => `${String(start).padStart(10, "0")} 00000 n \n`).join("");
  const count = objects.length + 1;
  file += `xref\n0 ${count}\n0000000000 65535 f \n${entries}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`;
  return Buffer.from(file, "latin1");
}

function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** Numbers that look random and follow from their seed. */
function numbers(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 12_345) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
