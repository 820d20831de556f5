import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");

export interface Compiled {
  /** The errors of each file, as TypeScript words them: `TS2339: Property …`. */
  readonly errors: ReadonlyMap<string, readonly string[]>;
  readonly instantiations: number;
  readonly checkSeconds: number;
}

/** Type-checks files as a user's strict project would, with the declarations that the package ships. */
export function compile(files: Readonly<Record<string, string>>): Compiled {
  const folder = mkdtempSync(join(tmpdir(), "millrace-types-"));
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(folder, "declarations.json"), JSON.stringify(declarations(folder)));
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project(files)));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    tsc(folder, "--project", "declarations.json");
    const stdout = tsc(folder, "--extendedDiagnostics", "--pretty", "false");
    const figure = (name: string): number => Number(new RegExp(`^${name}:\\s+([\\d.]+)`, "m").exec(stdout)?.[1]);
    return {
      errors: errorsIn(stdout, files),
      instantiations: figure("Instantiations"),
      checkSeconds: figure("Check time"),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function tsc(folder: string, ...args: readonly string[]): string {
  const { stdout, error } = spawnSync(join(ROOT, "node_modules", ".bin", "tsc"), args, {
    cwd: folder,
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  return stdout;
}

/** What `npm run build` makes of the declarations, without the rest. */
function declarations(folder: string): object {
  return {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      emitDeclarationOnly: true,
      rootDir: join(ROOT, "src"),
      outDir: join(folder, "types"),
      typeRoots: [join(ROOT, "node_modules", "@types")],
    },
    files: [join(ROOT, "src/sdk/index.ts"), join(ROOT, "src/testing/index.ts")],
    include: [],
  };
}

function project(files: Readonly<Record<string, string>>): object {
  const compilerOptions = {
    strict: true,
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: "nodenext",
    moduleDetection: "force",
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
    paths: { millrace: ["./types/sdk/index.d.ts"], "millrace/testing": ["./types/testing/index.d.ts"] },
  };
  return { compilerOptions, files: Object.keys(files) };
}

function errorsIn(output: string, files: Readonly<Record<string, string>>): ReadonlyMap<string, readonly string[]> {
  const errors = new Map<string, string[]>(Object.keys(files).map((name) => [name, []]));
  for (const [, file, error] of output.matchAll(/^(\S+?)\(\d+,\d+\): error (TS\d+: .*(?:\n {2}.*)*)$/gm)) {
    const known = errors.get(file!);
    if (known === undefined) throw new Error(`an error outside the files: ${file} ${error}`);
    known.push(error!);
  }
  if (/^error /m.test(output)) throw new Error(output);
  return errors;
}
