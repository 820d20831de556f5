import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

/**
 * The tree shows the architecture: a folder of src/ imports only from the folders named here, all of which stand above it.
 * `drivers` are imported by nobody but tests, the simulator and what composes an engine.
 */
const LADDER: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  host: [],
  settings: ["errors"],
  json: ["errors"],
  expression: ["errors", "json"],
  definition: ["errors", "json", "expression"],
  drawing: ["definition"],
  core: ["errors", "json", "expression", "definition"],
  store: ["host", "core"],
  drivers: ["host", "core", "store"],
  inbox: ["host", "core", "store"],
  engine: ["host", "json", "core", "store"],
  worker: ["host", "json", "expression", "core", "store"],
  handlers: ["errors", "host", "settings", "json", "expression", "definition", "worker"],
  api: ["errors", "host", "json", "expression", "definition", "core", "store", "inbox", "worker"],
  page: ["errors", "json", "definition", "drawing", "api"],
  bus: ["errors", "host", "settings", "json", "store", "worker", "api"],
  process: [
    "host",
    "settings",
    "json",
    "definition",
    "core",
    "store",
    "drivers",
    "engine",
    "worker",
    "handlers",
    "api",
    "bus",
  ],
  sdk: [
    "errors",
    "host",
    "settings",
    "json",
    "definition",
    "core",
    "store",
    "worker",
    "handlers",
    "api",
    "bus",
    "process",
  ],
  simulator: ["host", "json", "definition", "core", "store", "drivers", "inbox", "engine", "worker"],
  testing: [
    "errors",
    "host",
    "json",
    "definition",
    "core",
    "store",
    "drivers",
    "engine",
    "worker",
    "api",
    "sdk",
    "simulator",
  ],
  cli: [
    "errors",
    "host",
    "settings",
    "json",
    "definition",
    "drawing",
    "core",
    "store",
    "drivers",
    "engine",
    "worker",
    "handlers",
    "api",
    "page",
    "bus",
    "process",
    "sdk",
    "simulator",
  ],
};

/** Folders without I/O, clock, randomness or waiting: what they do follows from what they are given. */
const PURE = ["errors", "json", "expression", "definition", "core"];
const IMPURE =
  /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|setImmediate|performance\.now|process\.|await |async )/;
/** The one place where a built-in module is needed for a pure function. */
const PURE_BUILTINS: Readonly<Record<string, string>> = { "json/hash.ts": "node:crypto" };
/** Programs beside the library: they write a file that is checked in. */
const PROGRAMS = new Set(["definition/write-schema.ts"]);

/** Commands that do their work in this process, or on a store. */
const RUNS_HERE = new Set(["batch-run", "dev", "keys", "plan", "recover", "serve", "test", "validate", "worker"]);

const SRC = join(import.meta.dirname, "..", "src");

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !/(\.test|\/test-[a-z-]+)\.ts$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(SRC, file), "utf8") }));

function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:^|\n)(?:import|export)[^;]*?from\s+"([^"]+)"/g)].map((match) => match[1]!);
}

/** Those too that are loaded when they are needed. */
function loadsOf(text: string): string[] {
  return [...importsOf(text), ...[...text.matchAll(/\bimport\("([^"]+)"\)/g)].map((match) => match[1]!)];
}

/** The code without comments and strings, so that a word in a sentence is no finding. */
function codeOf(text: string): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, "")
    .replaceAll(/\/\/.*/g, "")
    .replaceAll(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '""');
}

describe("the tree", () => {
  test("has only folders that stand on the ladder", () => {
    const folders = new Set(files.map(({ file }) => file.split("/")[0]!).filter((name) => !name.endsWith(".ts")));
    expect([...folders].filter((folder) => LADDER[folder] === undefined)).toEqual([]);
  });

  test("is told by ARCHITECTURE.md in the order of the ladder", () => {
    const page = readFileSync(join(SRC, "..", "ARCHITECTURE.md"), "utf8");
    const [, table] = /## The folders of `src\/`\n([^]*?)\n## /.exec(page)!;
    const told = [...table!.matchAll(/^\| `([a-z]+)` \|/gm)].map(([, folder]) => folder!);
    expect(told).toEqual(Object.keys(LADDER));
    const wrong = told.filter((folder, i) => LADDER[folder]!.some((from) => !told.slice(0, i).includes(from)));
    expect(wrong).toEqual([]);
  });

  test("imports only from above", () => {
    const wrong: string[] = [];
    for (const { file, text } of files) {
      const folder = file.split("/")[0]!;
      if (folder.endsWith(".ts")) continue;
      for (const target of loadsOf(text)) {
        if (!target.startsWith(".")) continue;
        const to = relative(SRC, resolve(SRC, dirname(file), target)).split("/")[0]!;
        if (to !== folder && LADDER[folder]?.includes(to) !== true) wrong.push(`${file} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("judges expressions by a reference of its own, not by the code that is judged", () => {
    const checker = files.filter(({ file }) => file.startsWith("simulator/checker/"));
    expect(checker.length).toBeGreaterThan(0);
    const wrong = checker.filter(({ text }) =>
      importsOf(text).some((target) => /\/(expression|engine)\//.test(target)),
    );
    expect(wrong.map(({ file }) => file)).toEqual([]);
  });

  test("has no cycles", () => {
    const edges = new Map(
      files.map(({ file, text }) => [
        file,
        importsOf(text)
          .filter((target) => target.startsWith("."))
          .map((target) => relative(SRC, resolve(SRC, dirname(file), target))),
      ]),
    );
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (file: string, path: readonly string[]): void => {
      const at = path.indexOf(file);
      if (at >= 0) cycles.push([...path.slice(at), file].join(" → "));
      if (at >= 0 || done.has(file)) return;
      for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
      done.add(file);
    };
    for (const file of edges.keys()) visit(file, []);
    expect(cycles).toEqual([]);
  });

  test("loads neither an engine nor what checks definitions for commands that only ask a server", () => {
    const texts = new Map(files.map(({ file, text }) => [file, text]));
    const seen = (file: string, found = new Set<string>()): Set<string> => {
      if (found.has(file)) return found;
      found.add(file);
      for (const target of importsOf((texts.get(file) ?? "").replaceAll(/^(import|export) type [^;]*;/gm, ""))) {
        if (target.startsWith(".")) seen(relative(SRC, resolve(SRC, dirname(file), target)), found);
      }
      return found;
    };
    const folder = "cli/verbs/";
    const asking = [...texts.keys()].filter(
      (file) => file.startsWith(folder) && !RUNS_HERE.has(file.slice(folder.length, -3)),
    );
    expect(asking).toContain("cli/verbs/run.ts");
    const wrong = asking.flatMap((verb) =>
      [...seen(verb)].filter((file) => /^(expression|core|engine)\//.test(file)).map((file) => `${verb}: ${file}`),
    );
    expect(wrong).toEqual([]);
  });

  test("keeps clocks, randomness, I/O and waiting out of the pure folders", () => {
    const wrong: string[] = [];
    for (const { file, text } of files) {
      if (!PURE.includes(file.split("/")[0]!) || PROGRAMS.has(file)) continue;
      const found = IMPURE.exec(codeOf(text));
      if (found !== null) wrong.push(`${file}: ${found[0]}`);
      for (const target of importsOf(text)) {
        if (target.startsWith("node:") && PURE_BUILTINS[file] !== target) wrong.push(`${file} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("names no file for what it has in common with others", () => {
    expect(
      files.map(({ file }) => file).filter((file) => /(utils?|helpers?|common|types|misc)\.ts$/.test(file)),
    ).toEqual([]);
  });
});
