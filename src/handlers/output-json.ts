import { writeFile } from "node:fs/promises";
import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import type { OutputFiles } from "./output-file.ts";

/** `output.json`: a value as a file. */
export function outputJsonHandler(files: OutputFiles): Handler {
  return (call) => {
    const { value } = call.config as { readonly value: Json };
    return files.write(call, "json", (file) => writeFile(file, `${JSON.stringify(value, null, 2)}\n`, { flag: "wx" }));
  };
}
