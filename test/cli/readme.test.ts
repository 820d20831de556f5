import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../scripts/services/service.ts";
import { cleanUp, folder } from "./program.ts";

const ROOT = join(import.meta.dirname, "../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const SECTION = /## First ten minutes\n([\s\S]*?)\n## /.exec(README)![1]!;
const COMMANDS = [...SECTION.matchAll(/```sh\n([\s\S]*?)```/g)]
  .flatMap(([, block]) => block!.split("\n"))
  .filter((line) => line.trim() !== "");

afterAll(() => {
  rmSync(join(ROOT, "run.json"), { force: true });
  cleanUp();
});

test("the commands of the README's first ten minutes do what it says", async () => {
  // On a port and in a folder of our own: somebody may be using the usual ones.
  const port = String(await freePort());
  const env = {
    ...process.env,
    MILLRACE_PORT: port,
    MILLRACE_URL: `http://127.0.0.1:${port}`,
    MILLRACE_STORE: `sqlite:${join(folder(), "m.db")}`,
  };
  const [install, begin, ...commands] = COMMANDS;
  // This very checkout was installed that way.
  expect(install).toBe("npm ci");
  expect(begin).toMatch(/^npm start\b/);
  const server = spawn("npm", ["start"], { cwd: ROOT, env, detached: true, stdio: ["ignore", "pipe", "inherit"] });
  try {
    let told = "";
    await new Promise<void>((resolve) => {
      server.stdout.setEncoding("utf8").on("data", (text: string) => {
        told += text;
        if (/open http:\S+\/runs\//.test(told)) resolve();
      });
    });
    const shape = (text: string): string =>
      text
        .replaceAll(/\d+(\.\d+)? m?s/g, "N")
        .replaceAll(/ +N/g, " N")
        .replaceAll(/\/runs\/\S+/g, "/runs/ID")
        .replaceAll(/localhost:\d+/g, "localhost:PORT")
        .replaceAll(/data in \S+/g, "data in FILE");
    const shown = /You should see:\n\n```text\n([\s\S]*?)```/.exec(SECTION)![1]!;
    expect(shape(told)).toContain(shape(shown).trimEnd());
    for (const command of commands) {
      const { status, stderr, stdout } = spawnSync(
        "sh",
        ["-c", command.replace("localhost:4747", `localhost:${port}`)],
        { cwd: ROOT, env, encoding: "utf8" },
      );
      expect(status, `${command}\n${stdout}\n${stderr}`).toBe(0);
      expect(stdout + stderr, command).not.toBe("");
    }
  } finally {
    process.kill(-server.pid!, "SIGTERM");
  }
});

test("the workflow that the README shows is the example it runs", () => {
  const [, shown] = /```yaml\n([\s\S]*?)```/.exec(README)!;
  expect(readFileSync(join(ROOT, "examples/invoice.yaml"), "utf8")).toContain(shown!);
});
