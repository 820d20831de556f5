import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { apiStory } from "../support/api-story.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-api-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

apiStory("SQLite", () => openSqlite({ file: join(folder, "store.db"), host: nodeHost }), false);
