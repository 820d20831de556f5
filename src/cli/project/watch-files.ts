import { type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";

/** Editors write a file in several steps; after the last of them it is quiet for this long. */
const QUIET_MS = 100;

/** Calls back with the paths of files that were saved. Folders are watched, not files: many editors put a new file in place. */
export class FileWatch {
  readonly #files = new Set<string>();
  readonly #folders = new Map<string, FSWatcher>();
  readonly #saved: (paths: readonly string[]) => void;
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(saved: (paths: readonly string[]) => void) {
    this.#saved = saved;
  }

  add(paths: readonly string[]): void {
    for (const path of paths) {
      this.#files.add(path);
      const folder = dirname(path);
      if (this.#folders.has(folder)) continue;
      const watcher = watch(folder, (_event, name) => this.#note(join(folder, name ?? "")));
      // A folder that goes away is nothing to end for.
      watcher.on("error", () => undefined);
      this.#folders.set(folder, watcher);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
  }

  #note(path: string): void {
    if (!this.#files.has(path)) return;
    this.#changed.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#saved([...this.#changed]);
      this.#changed.clear();
    }, QUIET_MS);
  }
}
