import { createInterface } from "node:readline";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { failed } from "./failed.ts";
import type { OutputFiles } from "./output-file.ts";
import { cellOf, type Cells, ColumnFinder, type Columns, loadTableWriter, ROWS_PER_GROUP } from "./parquet-table.ts";
import type { RootedFolder } from "./rooted-folder.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface ParquetConfig {
  readonly rows?: readonly JsonObject[];
  readonly jsonl?: string;
  readonly columns?: Columns;
}

/**
 * `output.parquet`: rows as a Parquet file, written group by group. They stand in the config, or line by line in a file of
 * the folder that is read from, which may be as long as it likes.
 */
export function outputParquetHandler(files: OutputFiles, folder: RootedFolder): Handler {
  return async (call) => {
    const { rows, jsonl, columns: given } = call.config as unknown as ParquetConfig;
    const columns = given ?? columnsOf(rows ?? []);
    const table = await loadTableWriter("output.parquet");
    let count = 0;
    const written = await files.write(call, "parquet", async (file) => {
      const source = rows ?? linesOf(folder, jsonl!);
      const cells = async function* (): AsyncGenerator<Cells> {
        for await (const row of source) {
          if (++count % ROWS_PER_GROUP === 0) call.signal.throwIfAborted();
          yield cellsOf(row, columns, count);
        }
      };
      await table.write(file, columns, cells());
    });
    return { ...written, rows: rows?.length ?? count };
  };
}

/** A file needs at least one column. */
function columnsOf(rows: readonly JsonObject[]): Columns {
  const finder = new ColumnFinder();
  for (const row of rows) finder.note(row);
  return finder.count === 0 ? { row: "JSON" } : finder.columns();
}

function cellsOf(row: JsonObject, columns: Columns, at: number): Cells {
  const cells: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(columns)) {
    const value = row[name] ?? null;
    const cell = value === null ? null : cellOf(value, type);
    if (cell === undefined) {
      const reason = `row ${at} has ${JSON.stringify(value).slice(0, 80)} in ${JSON.stringify(name)}, which is no ${type}`;
      throw failed("DOCUMENT_INVALID", { what: "a table", reason });
    }
    cells[name] = cell;
  }
  return cells;
}

async function* linesOf(folder: RootedFolder, path: string): AsyncGenerator<JsonObject> {
  const file = await folder.open(path);
  const stream = file.createReadStream();
  try {
    let number = 0;
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      number++;
      if (line.trim() !== "") yield rowOf(line, path, number);
    }
  } finally {
    stream.destroy();
  }
}

function rowOf(line: string, path: string, number: number): JsonObject {
  let row: Json | undefined;
  try {
    row = JSON.parse(line) as Json;
  } catch {
    row = undefined;
  }
  if (isJsonObject(row)) return row;
  throw failed("DOCUMENT_INVALID", { what: "a table", reason: `line ${number} of "${path}" is not a JSON object` });
}
