import type { Json, JsonObject } from "../json/json.ts";
import { loadPackage } from "./optional-package.ts";

export type ColumnType = "STRING" | "DOUBLE" | "INT32" | "INT64" | "BOOLEAN" | "TIMESTAMP" | "JSON";
export type Columns = Readonly<Record<string, ColumnType>>;
export type Cells = Readonly<Record<string, unknown>>;

/** The part of hyparquet-writer that is called here. */
interface HyparquetWriter {
  fileWriter(file: string): unknown;
  parquetWriteRows(options: {
    readonly writer: unknown;
    readonly rows: AsyncIterable<Cells>;
    readonly columns: readonly { readonly name: string; readonly type: ColumnType; readonly nullable: true }[];
    readonly rowGroupSize: number;
  }): Promise<void>;
}

/** So many rows are in memory at a time. */
export const ROWS_PER_GROUP = 10_000;

/** Writes rows to Parquet files. */
export interface TableWriter {
  write(file: string, columns: Columns, rows: AsyncIterable<Cells>, rowsPerGroup?: number): Promise<void>;
}

/** @param user who needs it, for the error if its package is not there */
export async function loadTableWriter(user: string): Promise<TableWriter> {
  const hyparquet = (await loadPackage(user, "hyparquet-writer")) as HyparquetWriter;
  return {
    write: (file, columns, rows, rowsPerGroup = ROWS_PER_GROUP) =>
      hyparquet.parquetWriteRows({
        writer: hyparquet.fileWriter(file),
        rows,
        columns: Object.entries(columns).map(([name, type]) => ({ name, type, nullable: true })),
        rowGroupSize: rowsPerGroup,
      }),
  };
}

const NARROW = { string: "STRING", number: "DOUBLE", boolean: "BOOLEAN" } as const;

/** Finds the narrowest type that all values of a column have, row by row. */
export class ColumnFinder {
  /** Null as long as nothing but null was seen. */
  readonly #types = new Map<string, ColumnType | null>();

  get count(): number {
    return this.#types.size;
  }

  note(row: JsonObject): void {
    for (const [name, value] of Object.entries(row)) {
      const known = this.#types.get(name);
      const type = value === null ? null : (NARROW[typeof value as keyof typeof NARROW] ?? "JSON");
      if (known === undefined || known === null) this.#types.set(name, type);
      else if (type !== null && type !== known) this.#types.set(name, "JSON");
    }
  }

  columns(): Columns {
    return Object.fromEntries(Array.from(this.#types, ([name, type]) => [name, type ?? "STRING"]));
  }
}

/** A value as the library takes it; undefined if it is of another type. */
export function cellOf(value: Json, type: ColumnType): unknown {
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
