import { describe } from "vitest";
import { conformance } from "../../src/store/conformance/conformance.ts";
import { openSqliteHarness } from "./sqlite-harness.ts";

// Most cases wait for a lease to run out, so several at once cost nothing.
describe.concurrent("", () => conformance("sqlite", { open: () => openSqliteHarness() }));
