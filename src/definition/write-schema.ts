/** Writes schema/workflow.json. Run it after a change of the field table: `node src/definition/write-schema.ts`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { schemaText } from "./schema.ts";

const file = new URL("../../schema/workflow.json", import.meta.url);
mkdirSync(new URL(".", file), { recursive: true });
writeFileSync(file, schemaText());
