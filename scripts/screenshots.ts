import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { findProgram } from "./services/install.ts";

/**
 * Pictures of the pages in a real browser, for people to look at: `node scripts/screenshots.ts [FOLDER]`. Installs Debian's
 * chromium if it has to and may.
 */
const folder = resolve(process.argv[2] ?? "screenshots");
const bin = join(import.meta.dirname, "../bin/millrace");
const FAILING = `name: invoices
on_error: fail_branch
nodes:
  - { id: fetch, handler: http, config: { url: "http://127.0.0.1:9/", mock: { body: { pages: 3 } } } }
  - { id: pages, handler: map, dependencies: [fetch], config: { items: [1, 2, 3], handler: transform, config: { value: "{{ item }}" } } }
  - { id: total, handler: transform, dependencies: [pages], config: { expression: "nodes[\\"pages\\"].output[9]" }, retry: { max_attempts: 1 } }
  - { id: check, handler: router, dependencies: [fetch], config: { mode: exclusive, routes: [{ when: "fetch.body.pages > 2", to: ask }], else: skip } }
  - { id: ask, handler: wait, dependencies: [check], config: { seconds: 0.1 } }
  - { id: skip, handler: wait, dependencies: [check], config: { seconds: 0.1 } }
  - { id: save, handler: output, dependencies: [total, ask], config: { total: "{{ total }}" } }
`;

interface Listed {
  readonly items: readonly { readonly execution_id: string }[];
}

const chromium = await findProgram({
  program: "chromium",
  folders: [],
  debianPackage: "chromium",
  variable: "PATH",
});
const here = mkdtempSync(join(tmpdir(), "millrace-screenshots-"));
writeFileSync(join(here, "failing.yaml"), FAILING);
mkdirSync(folder, { recursive: true });
const server = spawn(bin, ["dev", "--port", "0", "--ephemeral"], { cwd: here, stdio: ["ignore", "pipe", "inherit"] });
try {
  const url = await new Promise<string>((found, failed) => {
    let said = "";
    server.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const run = /open (http:\S+)\/runs\/(\S+)/.exec(said);
      if (run !== null) found(run[1]!);
    });
    server.once("exit", () => failed(new Error(said)));
  });
  const env = { ...process.env, MILLRACE_URL: url };
  const millrace = (...args: readonly string[]): string =>
    spawnSync(bin, args, { cwd: here, env, encoding: "utf8" }).stdout.trim();
  millrace("run", "failing.yaml", "--server", "--watch");
  const newest = (workflow: string): string => {
    const { items } = JSON.parse(millrace("ls", "--json", "--workflow", workflow)) as Listed;
    return items[0]!.execution_id;
  };
  const [failed, sample] = [newest("invoices"), newest("hello")];
  for (const [name, path, size] of [
    ["executions", "/", "1200,700"],
    ["completed", `/runs/${sample}`, "1200,1500"],
    ["failed", `/runs/${failed}`, "1200,1900"],
    ["failed-narrow", `/runs/${failed}`, "420,1900"],
    ["login", "/login", "1200,600"],
    ["docs", "/docs", "1200,1200"],
  ] as const) {
    const file = join(folder, `${name}.png`);
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", `--window-size=${size}`];
    spawnSync(chromium, [...flags, `--screenshot=${file}`, url + path], { stdio: "ignore", timeout: 120_000 });
    process.stdout.write(`${file}\n`);
  }
} finally {
  server.kill();
  rmSync(here, { recursive: true });
}
