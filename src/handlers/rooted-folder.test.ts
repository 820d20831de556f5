import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { DOCUMENTS, handlersWith, type Run, testFolder } from "./test-folder.ts";

let root: string;
let run: Run;

beforeEach(() => {
  const outer = testFolder();
  root = join(outer, "files");
  mkdirSync(join(root, "in"), { recursive: true });
  mkdirSync(join(outer, "files-too"));
  writeFileSync(join(outer, "secret.txt"), "secret");
  writeFileSync(join(outer, "files-too", "secret.txt"), "secret");
  writeFileSync(join(root, "in", "a.txt"), "words");
  symlinkSync("../secret.txt", join(root, "out-of-it.txt"));
  symlinkSync(outer, join(root, "outer"));
  symlinkSync("in/a.txt", join(root, "inside.txt"));
  symlinkSync("loop", join(root, "loop"));
  run = handlersWith({ MILLRACE_FILES_FOLDER: root, MILLRACE_OUTPUT_FOLDER: root });
});

describe("a path in the folder of an operator", () => {
  test.each([
    ["in/a.txt"],
    ["./in/a.txt"],
    // A link that stays inside leads nowhere else.
    ["inside.txt"],
  ])("%s is read", async (path) => {
    expect(await run("file.read", { path })).toEqual({
      path,
      name: path.split("/").at(-1),
      bytes: 5,
      sha256: "dba36bffa5cab0f922d087a3aeb179f9d4e745df40b323e1b1471402848c8a3e",
      media_type: "text/plain",
      content: "words",
    });
  });

  test.each([
    ["up", "../secret.txt", "PATH_FORBIDDEN"],
    ["up again", "in/../../secret.txt", "PATH_FORBIDDEN"],
    ["up with the other slash", "in\\..\\..\\secret.txt", "PATH_FORBIDDEN"],
    ["absolute", "/etc/passwd", "PATH_FORBIDDEN"],
    ["absolute elsewhere", "C:\\secret.txt", "PATH_FORBIDDEN"],
    ["a link out of it", "out-of-it.txt", "PATH_FORBIDDEN"],
    ["through a link", "outer/secret.txt", "PATH_FORBIDDEN"],
    ["a neighbour of the same beginning", "outer/files-too/secret.txt", "PATH_FORBIDDEN"],
    ["cut short", "in/a.txt\0.png", "PATH_FORBIDDEN"],
    ["a folder", "in", "PATH_FORBIDDEN"],
    ["the folder itself", ".", "PATH_FORBIDDEN"],
    ["a link to itself", "loop", "FILE_NOT_FOUND"],
    ["nothing", "in/b.txt", "FILE_NOT_FOUND"],
    ["below a file", "in/a.txt/b", "FILE_NOT_FOUND"],
  ])("%s is not read", async (_, path, code) => {
    for (const handler of ["file.read", "pdf.text", "ocr"]) {
      await expect(run(handler, { path })).rejects.toMatchObject({ code, retryable: false });
    }
  });

  test("a pipe is no file, and nobody waits for its other end", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    await expect(run("file.read", { path: "pipe" })).rejects.toMatchObject({ code: "PATH_FORBIDDEN" });
  });

  test.each([
    ["../new.json"],
    ["/tmp/new.json"],
    ["outer/new.json"],
    ["outer/deep/new.json"],
    ["out-of-it.txt"],
    ["in"],
  ])("%s is not written", async (path) => {
    for (const [handler, config] of [
      ["output.json", { value: 1, path }],
      ["output.parquet", { rows: [{ a: 1 }], path }],
      ["audit", { event: "e", file: path }],
    ] as const) {
      await expect(run(handler, config)).rejects.toMatchObject({ code: "PATH_FORBIDDEN" });
    }
    expect(readFileSync(join(root, "../secret.txt"), "utf8")).toBe("secret");
    expect(readdirSync(join(root, ".."))).toEqual(["files", "files-too", "secret.txt"]);
  });

  test("without a folder nothing is read or written, and the setting is named", async () => {
    const bare = handlersWith({});
    await expect(bare("file.read", { path: "a" })).rejects.toMatchObject({
      code: "SETTING_MISSING",
      message: "file.read needs MILLRACE_FILES_FOLDER, which is not set on this worker.",
    });
    await expect(bare("audit", { event: "e" })).rejects.toMatchObject({ code: "SETTING_MISSING", retryable: false });
  });
});

describe("file.read", () => {
  test("tells a file by its content, and leaves it out if it is not wanted", async () => {
    const read = handlersWith({ MILLRACE_FILES_FOLDER: DOCUMENTS });
    const about = await read("file.read", { path: "bill.png", as: "none" });
    expect(about).toMatchObject({ name: "bill.png", bytes: 92_802, media_type: "image/png" });
    expect(about).not.toHaveProperty("content");
    expect(await read("file.read", { path: "AzureInterior.pdf", as: "none" })).toMatchObject({
      media_type: "application/pdf",
    });
  });

  test("gives bytes as base64", async () => {
    const { content } = await run("file.read", { path: "in/a.txt", as: "base64" });
    expect(content).toBe(Buffer.from("words").toString("base64"));
  });

  test("reads no more than it may", async () => {
    await expect(run("file.read", { path: "in/a.txt", max_bytes: 4 })).rejects.toMatchObject({
      code: "FILE_TOO_LARGE",
      message: '"in/a.txt" is larger than 4 bytes.',
    });
    expect(await run("file.read", { path: "in/a.txt", max_bytes: 5 })).toMatchObject({ bytes: 5 });
    writeFileSync(join(root, "large.txt"), "x".repeat(700_001));
    await expect(run("file.read", { path: "large.txt" })).rejects.toMatchObject({ code: "FILE_TOO_LARGE" });
    expect(await run("file.read", { path: "large.txt", as: "none" })).toMatchObject({ bytes: 700_001 });
  });

  test("takes no bytes for a text", async () => {
    writeFileSync(join(root, "latin1.txt"), Buffer.from([0x66, 0xfc, 0x72]));
    await expect(run("file.read", { path: "latin1.txt" })).rejects.toMatchObject({ code: "DOCUMENT_INVALID" });
  });
});
