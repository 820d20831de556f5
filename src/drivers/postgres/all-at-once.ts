import { Query, type QueryResult } from "pg";

/** A statement with the name that it is prepared under, and its values as texts. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What `pg` writes messages of the protocol with; its types do not have it. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  /** By name: what the server has been told on this connection. */
  readonly parsedStatements: Record<string, string>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: {
    readonly statement: string;
    readonly values: readonly unknown[];
    readonly valueMapper: (value: unknown) => string | null;
  }): void;
  describe(what: { readonly type: "P"; readonly name: "" }): void;
  execute(portal: { readonly portal: "" }): void;
  sync(): void;
}

/**
 * Statements that the server takes for one transaction, because a single sync follows them all: it begins with the first
 * and commits at the sync, and answers once. With `begin`, `commit` and a sync behind each of them it answers each, and
 * every answer wakes both sides.
 *
 * To be sent on a connection that nobody else uses, and that is thrown away if it fails.
 */
class AllAtOnce extends Query {
  readonly #statements: readonly PreparedStatement[];

  constructor(
    statements: readonly PreparedStatement[],
    done: (error: Error | null | undefined, results: unknown) => void,
  ) {
    super({ text: "" }, done);
    this.#statements = statements;
  }

  override submit = (connection: unknown): void => {
    const wire = connection as Wire;
    wire.stream.cork();
    for (const { name, text, values } of this.#statements) {
      if (wire.parsedStatements[name] === undefined) {
        wire.parse({ name, text });
        wire.parsedStatements[name] = text;
      }
      wire.bind({ statement: name, values, valueMapper: textOf });
      wire.describe({ type: "P", name: "" });
      wire.execute({ portal: "" });
    }
    wire.sync();
    wire.stream.uncork();
  };
}

/** All of them or none; one answer for each. */
export function runAllAtOnce(
  client: { query(query: Query): unknown },
  statements: readonly PreparedStatement[],
): Promise<readonly QueryResult[]> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null | undefined, results: unknown): void => {
      if (error) reject(error);
      // `pg` makes a list of several only.
      else resolve((Array.isArray(results) ? results : [results]) as readonly QueryResult[]);
    };
    client.query(new AllAtOnce(statements, done));
  });
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : `${value as string | number | boolean}`;
}
