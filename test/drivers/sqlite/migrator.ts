import { Database } from "../../../src/drivers/sqlite/file/database.ts";
import { openFile } from "../../../src/drivers/sqlite/file/open-file.ts";
import { nodeHost } from "../../../src/host/node-host.ts";

/**
 * A program that opens a file of an earlier format and dies right behind one of the statements with which it brings it up
 * to date: `FILE 3`. Without a number it comes to its end, and says how many statements there were.
 */
const [file, deadly] = process.argv.slice(2);
let statements = 0;

/** Statements behind semicolons at the ends of lines: no comment of a migration has one there. */
// oxlint-disable-next-line typescript/unbound-method -- it is called for whom it was meant
const script = Database.prototype.script;
Database.prototype.script = function (this: Database, sql: string): void {
  for (const statement of sql.split(/;\s*(?:\n|$)/).filter((text) => text.trim() !== "")) {
    script.call(this, statement);
    // So little room that all that is written goes to the log at once, as of a file that is larger than memory.
    if (statement.includes("cache_size")) script.call(this, "pragma cache_size = 8");
    if (this.isTransaction || statement === "commit") step();
  }
};
// oxlint-disable-next-line typescript/unbound-method -- likewise
const run = Database.prototype.run;
Database.prototype.run = function (this: Database, ...values: Parameters<typeof run>): number {
  const changes = run.apply(this, values);
  step();
  return changes;
};

function step(): void {
  if (++statements === Number(deadly)) process.kill(process.pid, "SIGKILL");
}

const { db, lock } = openFile(file!, nodeHost.id());
db.close();
lock.release();
console.log(statements);
