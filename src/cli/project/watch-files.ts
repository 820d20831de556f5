import { type FSWatcher, watch } from "node:fs";
import { basename, dirname, resolve } from "node:path";

/** Editors write a file in several steps; after the last of them it is quiet for this long. */
const QUIET_MS = 100;

/** Calls back with the files that were saved. Folders are watched, not files: many editors put a new file in place. */
export function watchFiles(
  directory: string,
  files: readonly string[],
  saved: (files: readonly string[]) => void,
): () => void {
  const byFolder = Map.groupBy(files, (file) => dirname(resolve(directory, file)));
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const watchers = [...byFolder].map(([folder, members]): FSWatcher => {
    const watcher = watch(folder, (_event, name) => {
      const file = members.find((member) => basename(member) === name);
      if (file === undefined) return;
      changed.add(file);
      clearTimeout(timer);
      timer = setTimeout(() => {
        saved([...changed]);
        changed.clear();
      }, QUIET_MS);
    });
    // A folder that goes away is nothing to end for.
    watcher.on("error", () => undefined);
    return watcher;
  });
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
