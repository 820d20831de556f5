import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";

/** Where lines go one after the other. */
export interface Lines {
  write(line: string): Promise<void>;
  /** What was written so far is in the file. */
  end(): Promise<void>;
}

/** Lines for a file. One that cannot be written, or not any more, rejects the next line or the end. */
export function fileLines(file: string, flags: "w" | "a" = "w"): Lines {
  const stream = createWriteStream(file, { flags });
  // Without a listener the first error would end the process, whatever it was about to do.
  stream.on("error", () => undefined);
  return {
    write: async (line) => {
      if (stream.errored !== null) throw stream.errored;
      if (!stream.write(`${line}\n`)) await once(stream, "drain");
    },
    end: async () => {
      stream.end();
      await finished(stream);
    },
  };
}
