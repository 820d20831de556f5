import { renameSync, statSync } from "node:fs";
import { cellOf, type Cells, ColumnFinder, type Columns, type TableWriter } from "../../handlers/parquet-table.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { BatchItem } from "./batch-source.ts";
import { itemLines } from "./item-lines.ts";

/** What a group of rows may weigh while it is put together. */
const GROUP_BYTES = 32 * 1024 * 1024;
const MAX_GROUP_ROWS = 10_000;
/** With more names than these, outputs are no rows of a table. */
const MAX_COLUMNS = 1_000;

/**
 * Writes results as a Parquet file, from the lines that were gathered: one cannot be added to, and only all outputs
 * together tell which columns there are. The lines are read twice, and as many are in memory as make a group of rows.
 *
 * Each key of the outputs is a column `output_<key>`; if not all of them are objects, there is one column `output`.
 */
export async function writeResultsTable(writer: TableWriter, lines: string, target: string): Promise<void> {
  const finder = new ColumnFinder();
  let isTabular = true;
  let count = 0;
  for await (const { text } of itemLines(lines)) {
    count++;
    const { output } = JSON.parse(text) as BatchItem;
    isTabular &&= (output === null || isJsonObject(output)) && finder.count <= MAX_COLUMNS;
    if (isTabular && isJsonObject(output)) finder.note(output);
  }
  const columns = isTabular && finder.count > 0 ? finder.columns() : null;
  const averageBytes = statSync(lines).size / Math.max(1, count);
  const rowsPerGroup = Math.max(1, Math.min(MAX_GROUP_ROWS, Math.floor(GROUP_BYTES / averageBytes)));
  const all = { ...FIXED, ...(columns === null ? { output: "JSON" as const } : prefixed(columns)) };
  await writer.write(`${target}.new`, all, rowsOf(lines, columns), rowsPerGroup);
  renameSync(`${target}.new`, target);
}

const FIXED: Columns = { index: "INT64", status: "STRING", execution_id: "STRING", error: "JSON" };

function prefixed(columns: Columns): Columns {
  return Object.fromEntries(Object.entries(columns).map(([name, type]) => [`output_${name}`, type]));
}

async function* rowsOf(lines: string, columns: Columns | null): AsyncGenerator<Cells> {
  for await (const { text } of itemLines(lines)) {
    const { index, status, execution_id, error, output } = JSON.parse(text) as BatchItem;
    const row: Record<string, unknown> = { index: BigInt(index), status, execution_id, error };
    if (columns === null) row["output"] = output;
    else if (isJsonObject(output)) Object.assign(row, cellsOf(output, columns));
    yield row;
  }
}

function cellsOf(output: JsonObject, columns: Columns): Cells {
  return Object.fromEntries(
    Object.entries(output).map(([name, value]) => [
      `output_${name}`,
      value === null ? null : cellOf(value, columns[name]!),
    ]),
  );
}
