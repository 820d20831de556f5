import { expect, test } from "vitest";
import { KafkaError } from "../bus/kafka.ts";
import { startFailure } from "./start-process.ts";

test("a bus that cannot be used is told with what mends it", () => {
  const away = startFailure(new KafkaError("nobody answers"), 0);
  expect(away).toMatchObject({ hint: "name brokers that answer: --bus kafka://HOST:PORT,…" });
  const missing = startFailure(new KafkaError("not installed", { fix: "npm install it" }), 0);
  expect(missing).toMatchObject({ message: "the bus cannot be used: not installed", hint: "npm install it" });
});
