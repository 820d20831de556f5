import { conformance } from "../../src/store/conformance/conformance.ts";
import { openMemoryHarness } from "./memory-harness.ts";

conformance("memory", { open: () => openMemoryHarness({ partitions: 4 }) });

conformance("memory, as an embedded store", {
  open: () => openMemoryHarness({ volatileTasks: true, exclusive: true }),
});
