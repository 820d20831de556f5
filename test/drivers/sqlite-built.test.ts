import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const SRC = join(import.meta.dirname, "..", "..", "src");
/** What the driver needs of the sources. */
const FOLDERS = ["core", "drivers/memory", "drivers/sqlite", "host", "store"];

const PROGRAM = `
  import { openSqlite } from "./drivers/sqlite/sqlite-store.js";
  import { nodeHost } from "./host/node-host.js";
  const store = await openSqlite({ file: process.argv[2], host: nodeHost });
  const outcome = await store.partitions.acquire(0, "owner", 1000);
  await store.records.put([{ scope: "s", hash: "h", text: "1" }]);
  console.log(outcome.kind, await store.records.get([{ scope: "s", hash: "h" }]));
  await store.close();
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-built-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  for (const name of FOLDERS) build(name);
  writeFileSync(join(folder, "program.js"), PROGRAM);
});
afterAll(() => rm(folder, { recursive: true }));

/** As the compiler does with our settings: types go, and imports of a file name what it has become. */
function build(name: string): void {
  for (const file of readdirSync(join(SRC, name), { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
    const text = stripTypeScriptTypes(readFileSync(join(SRC, name, file), "utf8"));
    const to = join(folder, name, file.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, text.replaceAll(/(from\s+"\.[^"]*)\.ts"/g, '$1.js"'));
  }
}

test("the store works as JavaScript, threads included", async () => {
  const { stdout } = await run(process.execPath, [join(folder, "program.js"), join(folder, "store.db")]);
  expect(stdout).toBe("acquired [ '1' ]\n");
});
