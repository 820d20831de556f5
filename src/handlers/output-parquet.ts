import { createInterface } from "node:readline";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { failed } from "./failed.ts";
import { loadPackage } from "./optional-package.ts";
import type { OutputFiles } from "./output-file.ts";
import type { RootedFolder } from "./rooted-folder.ts";

type ColumnType = "STRING" | "DOUBLE" | "INT32" | "INT64" | "BOOLEAN" | "TIMESTAMP" | "JSON";
type Columns = Readonly<Record<string, ColumnType>>;

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface ParquetConfig {
  readonly rows?: readonly JsonObject[];
  readonly jsonl?: string;
  readonly columns?: Columns;
}

/** The part of hyparquet-writer that is called here. */
interface HyparquetWriter {
  fileWriter(file: string): unknown;
  parquetWriteRows(options: {
    readonly writer: unknown;
    readonly rows: AsyncIterable<Readonly<Record<string, unknown>>>;
    readonly columns: readonly { readonly name: string; readonly type: ColumnType; readonly nullable: true }[];
    readonly rowGroupSize: number;
  }): Promise<void>;
}

/** So many rows are in memory at a time. */
const ROWS_PER_GROUP = 10_000;

/**
 * `output.parquet`: rows as a Parquet file, written group by group. They stand in the config, or line by line in a file of
 * the folder that is read from, which may be as long as it likes.
 */
export function outputParquetHandler(files: OutputFiles, folder: RootedFolder): Handler {
  return async (call) => {
    const { rows, jsonl, columns: given } = call.config as unknown as ParquetConfig;
    const columns = given ?? columnsOf(rows ?? []);
    const hyparquet = (await loadPackage("output.parquet", "hyparquet-writer")) as HyparquetWriter;
    let count = 0;
    const written = await files.write(call, "parquet", async (file) => {
      const source = rows ?? linesOf(folder, jsonl!);
      const cells = async function* (): AsyncGenerator<Readonly<Record<string, unknown>>> {
        for await (const row of source) {
          if (++count % ROWS_PER_GROUP === 0) call.signal.throwIfAborted();
          yield cellsOf(row, columns, count);
        }
      };
      await hyparquet.parquetWriteRows({
        writer: hyparquet.fileWriter(file),
        rows: cells(),
        columns: Object.entries(columns).map(([name, type]) => ({ name, type, nullable: true })),
        rowGroupSize: ROWS_PER_GROUP,
      });
    });
    return { ...written, rows: rows?.length ?? count };
  };
}

/** The narrowest type that all values of a column have. A file needs at least one column. */
function columnsOf(rows: readonly JsonObject[]): Columns {
  const columns: Record<string, ColumnType> = {};
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  for (const name of names) {
    const values = rows.map((row) => row[name] ?? null).filter((value) => value !== null);
    const kinds = new Set(values.map((value) => typeof value));
    const [kind = "string"] = kinds;
    const type = { string: "STRING", number: "DOUBLE", boolean: "BOOLEAN" }[kind as string] as ColumnType | undefined;
    columns[name] = kinds.size > 1 || type === undefined ? "JSON" : type;
  }
  return names.size === 0 ? { row: "JSON" } : columns;
}

function cellsOf(row: JsonObject, columns: Columns, at: number): Readonly<Record<string, unknown>> {
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

/** A value as the library takes it; undefined if it is of another type. */
function cellOf(value: Json, type: ColumnType): unknown {
  switch (type) {
    case "STRING":
      return typeof value === "string" ? value : JSON.stringify(value);
    case "DOUBLE":
      return typeof value === "number" ? value : undefined;
    case "INT32":
      return typeof value === "number" && (value | 0) === value ? value : undefined;
    case "INT64":
      return Number.isSafeInteger(value) ? BigInt(value as number) : undefined;
    case "BOOLEAN":
      return typeof value === "boolean" ? value : undefined;
    case "TIMESTAMP": {
      const date = typeof value === "string" ? new Date(value) : undefined;
      return date === undefined || Number.isNaN(date.getTime()) ? undefined : date;
    }
    case "JSON":
      return value;
  }
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
