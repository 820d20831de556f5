/** Writes docs/patterns.md from the table. */
import { writeFileSync } from "node:fs";
import { patternsPage } from "./table.ts";

writeFileSync(new URL("../../docs/patterns.md", import.meta.url), patternsPage());
