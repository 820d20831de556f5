import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The version of this package: the package.json nearest above this file, in the sources and in a build. */
export function version(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<
        string,
        string
      >;
      if (name === "millrace" && version !== undefined) return version;
    } catch {
      // Not here; one further up.
    }
  }
  return "unknown";
}
