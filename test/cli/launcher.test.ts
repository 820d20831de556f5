import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { BIN, folder, cleanUp } from "./program.ts";

afterAll(cleanUp);

const ROOT = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };

/** A Node of the system that is too old for us, if there is one. */
const OLD = ["/usr/bin/node", "/usr/local/bin/node"].find((path) => {
  const { stdout } = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" });
  return Number(stdout?.split(".")[0]) < 22;
});

describe("the launcher", () => {
  test("works by path, through a link and from another folder", () => {
    const here = folder();
    symlinkSync(BIN, join(here, "mr"));
    expect(spawnSync(join(here, "mr"), ["--version"], { encoding: "utf8", cwd: here }).stdout).toBe(`${version}\n`);
    expect(spawnSync("./bin/millrace", ["--version"], { encoding: "utf8", cwd: ROOT }).stdout).toBe(`${version}\n`);
    expect(spawnSync("sh", ["millrace", "--version"], { encoding: "utf8", cwd: join(ROOT, "bin") }).stdout).toBe(
      `${version}\n`,
    );
  });

  test.skipIf(!existsSync("/dev/full"))("does not say that all is well if its words were lost", () => {
    for (const args of ["--version", "--help", "completion bash"]) {
      const { status, stderr } = spawnSync("sh", ["-c", `"${BIN}" ${args} > /dev/full`], { encoding: "utf8" });
      expect([status, stderr]).toEqual([6, expect.stringContaining("no space left on device")]);
    }
    expect(spawnSync("sh", ["-c", `"${BIN}" --version 2> /dev/full`], { encoding: "utf8" }).status).toBe(0);
  });

  test("works when Node is given the file", () => {
    for (const file of ["bin/millrace", "bin/millrace.js"]) {
      expect(spawnSync(process.execPath, [join(ROOT, file), "--version"], { encoding: "utf8" }).stdout).toBe(
        `${version}\n`,
      );
    }
  });

  test.skipIf(OLD === undefined)(
    "hands over from a Node that is too old, with arguments, streams and exit code",
    () => {
      const args = [join(ROOT, "bin/millrace.js"), "validate", "-"];
      const good = spawnSync(OLD!, args, { encoding: "utf8", input: "name: x\nnodes: [{ id: a, handler: output }]\n" });
      expect([good.status, good.stdout]).toEqual([0, "stdin: x is valid, 1 node\n"]);
      expect(spawnSync(OLD!, args, { encoding: "utf8", input: "{}" }).status).toBe(3);
    },
  );

  test.skipIf(OLD === undefined)("says what is missing where there is no other Node", () => {
    const here = folder();
    mkdirSync(join(here, "bin"));
    cpSync(join(ROOT, "bin"), join(here, "bin"), { recursive: true });
    const { status, stderr } = spawnSync(OLD!, [join(here, "bin/millrace.js"), "--version"], { encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^millrace: Node 20\.\S+ is too old\. Needed is 22\.22\.2 or newer of 22, .* In a checkout `npm ci` brings one\.\n$/,
    );
    const alone = spawnSync(join(here, "bin/millrace"), [], { encoding: "utf8", env: { PATH: join(here, "nothing") } });
    expect(alone.stderr + alone.stdout).not.toBe("");
    expect(alone.status).not.toBe(0);
  });
});
