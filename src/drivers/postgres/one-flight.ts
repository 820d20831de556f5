import { type Connection as Wire, Query, type QueryResult } from "pg";

/** A statement under the name by which a connection knows it once it was parsed there, and its values as they travel. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | null)[];
}

/** What `pg` has on every connection, and its types do not have or have otherwise. */
interface Connection {
  /** What was sent to be parsed, by name: `pg` looks here before it sends it again. */
  readonly submittedNamedStatements: Record<string, string>;
  readonly parsedStatements: Readonly<Record<string, string>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: { readonly statement: string; readonly values: readonly (string | null)[] }): void;
  describe(portal: { readonly type: "P"; readonly name: "" }): void;
  execute(portal: { readonly portal: "" }): void;
  sync(): void;
}

/**
 * Statements that need nothing of each other's answers, as one transaction. Between two syncs of the protocol the server
 * takes everything for one: it begins by itself, and what ends it is the sync. So neither `begin` nor `commit` is a statement,
 * nobody is told in between that the server is ready for the next, and all answers come in one piece, after the commit.
 *
 * If one fails the server passes over the rest, undoes what was done, and says so: a connection on which that has happened
 * is not used again, as the statements behind it may not have been parsed.
 */
export class OneFlight extends Query {
  readonly #statements: readonly Prepared[];

  constructor(statements: readonly Prepared[], done: (error: Error | null, answers: readonly QueryResult[]) => void) {
    super({ text: "" }, (error, answers: unknown) => {
      done(error ?? null, Array.isArray(answers) ? (answers as QueryResult[]) : [answers as QueryResult]);
    });
    this.#statements = statements;
    this.submit = (wire) => this.#send(wire as Wire & Connection);
  }

  #send(connection: Connection): null {
    const { submittedNamedStatements, parsedStatements } = connection;
    for (const { name, text, values } of this.#statements) {
      if (parsedStatements[name] === undefined && submittedNamedStatements[name] === undefined) {
        connection.parse({ name, text });
        submittedNamedStatements[name] = text;
      }
      connection.bind({ statement: name, values });
      connection.describe({ type: "P", name: "" });
      connection.execute({ portal: "" });
    }
    connection.sync();
    return null;
  }
}
