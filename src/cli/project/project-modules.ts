import { realpathSync, statSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { offerOwnPackage } from "./own-package.ts";

/** A file of the project that was loaded as a module. */
interface Loaded {
  mtimeMs: number;
  /** How often it had to be loaded anew. */
  changes: number;
  readonly importers: Set<string>;
}

/** This package: a project beside it, as in a checkout, must not get a second copy of it. */
const OWN = new URL("../../", import.meta.url).href;
const { cache } = createRequire(import.meta.url);

/**
 * The modules of a project, which may change while a process uses them. One that has changed is another module, under
 * another name, and so is each that imports it; what has not changed is shared as before. What was loaded stays as it was,
 * and so does what CommonJS requires.
 */
class ProjectModules {
  /** By real path. */
  readonly #files = new Map<string, Loaded>();
  #isWatching = false;

  /** As the file and all that it imports are now. */
  async load(path: string): Promise<unknown> {
    this.#watchImports();
    const real = realPath(path);
    this.#note(real);
    this.#lookAgain();
    return import(this.#named(pathToFileURL(real).href, real));
  }

  /** All files that were loaded. */
  get files(): readonly string[] {
    return [...this.#files.keys()];
  }

  /** Whether a module is one of these files, or imports one of them, or imports one that does. */
  dependsOn(path: string, files: readonly string[]): boolean {
    return this.#withImporters(files.map(realPath)).has(realPath(path));
  }

  #note(path: string): Loaded {
    let loaded = this.#files.get(path);
    if (loaded === undefined) {
      loaded = { mtimeMs: mtimeOf(path), changes: 0, importers: new Set() };
      this.#files.set(path, loaded);
    }
    return loaded;
  }

  #lookAgain(): void {
    const changed: string[] = [];
    for (const [path, loaded] of this.#files) {
      const mtimeMs = mtimeOf(path);
      if (mtimeMs === loaded.mtimeMs) continue;
      loaded.mtimeMs = mtimeMs;
      changed.push(path);
    }
    for (const path of this.#withImporters(changed)) {
      this.#note(path).changes++;
      // CommonJS goes by the file alone, whatever the module is called.
      delete cache[path];
    }
  }

  #withImporters(paths: readonly string[]): ReadonlySet<string> {
    const all = new Set(paths);
    // A set that grows while it is gone through is gone through to its end.
    for (const path of all) for (const importer of this.#files.get(path)?.importers ?? []) all.add(importer);
    return all;
  }

  #named(url: string, path: string): string {
    const { changes } = this.#note(path);
    return changes === 0 ? url : `${url}${url.includes("?") ? "&" : "?"}changed=${changes}`;
  }

  #watchImports(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    offerOwnPackage();
    registerHooks({
      resolve: (specifier, context, next) => {
        const resolved = next(specifier, context);
        const importer = projectFile(context.parentURL);
        const path = projectFile(resolved.url);
        if (importer === undefined || path === undefined || !this.#files.has(importer)) return resolved;
        // Node remembers where a `require` led, and finds half a module there once it was forgotten: it stays as it is.
        if (context.conditions.includes("require")) return resolved;
        this.#note(path).importers.add(importer);
        return { ...resolved, url: this.#named(resolved.url, path) };
      },
    });
  }
}

export const projectModules: ProjectModules = new ProjectModules();

/** The file behind a URL, if it can be one of a project's. */
export function projectFile(url: string | undefined): string | undefined {
  if (url === undefined || !url.startsWith("file:") || url.startsWith(OWN)) return undefined;
  const { href } = Object.assign(new URL(url), { search: "", hash: "" });
  return href.includes("/node_modules/") ? undefined : fileURLToPath(href);
}

function mtimeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** As Node names a module; of a file that is gone, as it was asked for. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
