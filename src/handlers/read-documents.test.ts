import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { OcrPool } from "./ocr-pool.ts";
import { loadPackage, packageFile } from "./optional-package.ts";
import { DOCUMENTS, handlersWith, testFolder } from "./test-folder.ts";

const ENV = { MILLRACE_FILES_FOLDER: DOCUMENTS };

describe("pdf.text", () => {
  test("gives the text of all pages and what the file says of itself", async () => {
    const output = await handlersWith(ENV)("pdf.text", { path: "SammyMaystoneLinesTest.pdf" });
    expect(output).toMatchObject({ page_count: 1, has_text: true, info: { title: "Invoice" } });
    expect(output["text"]).toContain("# invoice_number_1\nSammy Maystone");
  });

  test("takes the bytes themselves", async () => {
    const base64 = readFileSync(join(DOCUMENTS, "AzureInterior.pdf")).toString("base64");
    expect((await handlersWith({})("pdf.text", { base64 }))["text"]).toContain("Total $ 279.84");
  });

  test.each([
    ["rubbish", "rubbish"],
    ["a PDF that ends too soon", "%PDF-1.4\n1 0 obj"],
    ["nothing", " "],
  ])("does not try %s again", async (_, text) => {
    const folder = testFolder();
    writeFileSync(join(folder, "a.pdf"), text);
    await expect(handlersWith({ MILLRACE_FILES_FOLDER: folder })("pdf.text", { path: "a.pdf" })).rejects.toMatchObject({
      code: "DOCUMENT_INVALID",
      retryable: false,
    });
  });

  test("reads no more pages than it may", async () => {
    const config = { path: "AzureInterior.pdf", max_bytes: 100 };
    await expect(handlersWith(ENV)("pdf.text", config)).rejects.toMatchObject({ code: "FILE_TOO_LARGE" });
  });
});

describe("ocr", () => {
  test("reads a picture without a network, and says how sure it is", async () => {
    const output = await handlersWith(ENV)("ocr", { path: "simple.png" });
    expect(output).toMatchObject({ text: "Tesseract.js", languages: ["eng"], lines: [{ text: "Tesseract.js" }] });
    expect(output["confidence"]).toBeGreaterThan(0.5);
    expect(output["confidence"]).toBeLessThanOrEqual(1);
  });

  test("does not try again what is no picture, and reads on", async () => {
    const folder = testFolder();
    const image = readFileSync(join(DOCUMENTS, "simple.png"));
    writeFileSync(join(folder, "text.png"), "words");
    writeFileSync(join(folder, "broken.png"), image.subarray(0, 200));
    writeFileSync(join(folder, "simple.png"), image);
    const run = handlersWith({ MILLRACE_FILES_FOLDER: folder });
    for (const path of ["text.png", "broken.png"]) {
      await expect(run("ocr", { path })).rejects.toMatchObject({ code: "DOCUMENT_INVALID", retryable: false });
    }
    expect(await run("ocr", { path: "simple.png" })).toMatchObject({ text: "Tesseract.js" });
  });

  test("names the package of a language that is not there", async () => {
    const config = { path: "simple.png", languages: ["eng", "zza"] };
    await expect(handlersWith(ENV)("ocr", config)).rejects.toMatchObject({
      code: "PACKAGE_MISSING",
      message: "ocr needs @tesseract.js-data/zza, which this worker does not have: npm i @tesseract.js-data/zza",
    });
    await expect(handlersWith(ENV)("ocr", { ...config, languages: ["../eng"] })).rejects.toMatchObject({
      code: "PACKAGE_MISSING",
    });
  });
});

describe("the engines of ocr", () => {
  const DATA = { text: "t", confidence: 90, blocks: null };

  /** Engines that read when they are told to. */
  function pool(
    slots: number,
    isPrompt = false,
  ): {
    readonly pool: OcrPool;
    readonly log: string[];
    readonly pending: { resolve(): void; reject(): void }[];
  } {
    const log: string[] = [];
    const pending: { resolve(): void; reject(): void }[] = [];
    let count = 0;
    const start = (languages: readonly string[]): Promise<never> => {
      const name = `${languages.join("+")}${++count}`;
      log.push(`start ${name}`);
      return Promise.resolve({
        recognize: () => {
          if (isPrompt) return Promise.resolve({ data: DATA });
          const { promise, resolve, reject } = Promise.withResolvers();
          pending.push({ resolve: () => resolve({ data: DATA }), reject: () => reject(new Error("no")) });
          return promise;
        },
        terminate: () => Promise.resolve(log.push(`end ${name}`)),
      } as never);
    };
    return { pool: new OcrPool(slots, start), log, pending };
  }

  const NEVER = new AbortController().signal;
  const IMAGE = new Uint8Array();

  async function answerAll(pending: { resolve(): void }[], count: number): Promise<void> {
    for (let done = 0; done < count; done++) {
      await expect.poll(() => pending.length).toBeGreaterThan(0);
      pending.shift()!.resolve();
    }
  }

  test("are shared, and replaced after 50 pages", async () => {
    const { pool: pages, log } = pool(1, true);
    await Promise.all(Array.from({ length: 101 }, () => pages.read(["eng"], IMAGE, NEVER)));
    expect(log).toEqual(["start eng1", "end eng1", "start eng2", "end eng2", "start eng3"]);
    await pages.close();
    expect(log.at(-1)).toBe("end eng3");
  });

  test("are no more than slots, whatever the languages", async () => {
    const { pool: pages, log, pending } = pool(1);
    for (const language of ["eng", "deu"]) {
      const read = pages.read([language], IMAGE, NEVER);
      await answerAll(pending, 1);
      await read;
    }
    expect(log).toEqual(["start eng1", "end eng1", "start deu2"]);
  });

  test("end with the call that they serve, and one that waits takes its turn", async () => {
    const { pool: pages, log, pending } = pool(1);
    const [stop, leave] = [new AbortController(), new AbortController()];
    const stopped = pages.read(["eng"], IMAGE, stop.signal);
    const left = pages.read(["eng"], IMAGE, leave.signal);
    const next = pages.read(["eng"], IMAGE, NEVER);
    await expect.poll(() => pending.length).toBe(1);
    leave.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    stop.abort(new Error("stopped"));
    await expect(stopped).rejects.toThrow("stopped");
    await expect.poll(() => pending.length).toBe(2);
    pending[1]!.resolve();
    expect(await next).toMatchObject({ text: "t", confidence: 0.9 });
    expect(log).toEqual(["start eng1", "end eng1", "start eng2"]);
  });

  test("are not used again once they failed", async () => {
    const { pool: pages, log, pending } = pool(1);
    const failed = pages.read(["eng"], IMAGE, NEVER);
    await expect.poll(() => pending.length).toBe(1);
    pending.shift()!.reject();
    expect(await failed).toBeUndefined();
    const next = pages.read(["eng"], IMAGE, NEVER);
    await answerAll(pending, 1);
    await next;
    expect(log).toEqual(["start eng1", "end eng1", "start eng2"]);
  });
});

describe("a package that is not there", () => {
  test("is named with how to install it", async () => {
    await expect(loadPackage("pdf.text", "millrace-none", ["another"])).rejects.toMatchObject({
      code: "PACKAGE_MISSING",
      retryable: false,
      message: "pdf.text needs millrace-none and another, which this worker does not have: npm i millrace-none another",
    });
    expect(() => packageFile("ocr", "millrace-none", "x")).toThrow("npm i millrace-none");
  });
});
