import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Test files that need real servers. A run that has none of them starts none. */
const WITH_SERVICES = [
  "test/drivers/postgres*.test.ts",
  "test/drivers/redis*.test.ts",
  "test/cli/fleet.test.ts",
  "test/fleet/*.test.ts",
  "test/archive/*.test.ts",
];

export default defineConfig({
  test: {
    // Most of the time goes into waiting for processes, disks and servers: one worker fewer than cores, as by default, would idle.
    maxWorkers: availableParallelism(),
    // What is polled for comes sooner or later; a busy machine must not decide whether a test passes.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["src/**/*.test.ts", "test/**/*.test.ts"], exclude: WITH_SERVICES },
      },
      {
        extends: true,
        test: { name: "services", include: WITH_SERVICES, globalSetup: "scripts/services/global-setup.ts" },
      },
    ],
  },
});
