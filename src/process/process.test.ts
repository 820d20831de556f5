import { pino } from "pino";
import { expect, test } from "vitest";
import { readSettings } from "../settings/read-settings.ts";
import { MillraceProcess } from "./process.ts";

test("a worker tells what others check definitions by: schemas and time limits of its handlers", async () => {
  const entry = { engine: false, configSchema: { type: "object" }, defaultTimeoutSeconds: 600 };
  const running = await MillraceProcess.start({
    settings: readSettings({ env: {} }).settings,
    address: { kind: "memory" },
    env: {},
    roles: ["engine", "worker"],
    user: { handlers: new Map([["slow", () => null]]), entries: new Map([["slow", entry]]) },
    log: pino({ level: "silent" }),
    version: "test",
    loopback: false,
  });
  const told = (await running.store.records.registered()).flatMap(
    ({ role, text }) => (role === "worker" && (JSON.parse(text) as { handlers?: { name: string }[] }).handlers) || [],
  );
  expect(told.find(({ name }) => name === "slow")).toEqual({
    name: "slow",
    config_schema: { type: "object" },
    timeout_seconds: 600,
  });
  await running.stop();
});
