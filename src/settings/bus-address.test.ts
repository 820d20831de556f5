import { describe, expect, test } from "vitest";
import { busAddress, shownBus } from "./bus-address.ts";
import type { Settings } from "./declarations.ts";

function read(bus: string | undefined, kafkaBrokers?: string): ReturnType<typeof busAddress> {
  return busAddress({ bus, kafkaBrokers } as Settings);
}

describe("the address of a bus", () => {
  test("is not there unless it was asked for, whatever brokers others have", () => {
    expect(read(undefined, "kafka:9092")).toBeUndefined();
  });

  test("names brokers, a port where there is none, and the prefix of all topics", () => {
    expect(read("kafka://a")).toEqual({ brokers: ["a:9092"], prefix: "millrace", tls: false });
    expect(read("kafka://a:1,b,[::1]:2/of.orders")).toEqual({
      brokers: ["a:1", "b:9092", "[::1]:2"],
      prefix: "of.orders",
      tls: false,
    });
    expect(read("kafka", "a:1, b:2")).toEqual({ brokers: ["a:1", "b:2"], prefix: "millrace", tls: false });
  });

  test("has user and password as any URL, and is shown without them", () => {
    const address = read("kafkas://me:p%40ss@a:1");
    expect(address).toEqual({
      brokers: ["a:1"],
      prefix: "millrace",
      tls: true,
      user: { name: "me", password: "p@ss" },
    });
    expect(shownBus(address as never)).toBe("kafkas://a:1/millrace");
  });

  test.each([
    ["amqp://a", /^MILLRACE_BUS must be kafka:.*not "amqp:\/\/a"\.$/],
    ["kafka://", /^MILLRACE_BUS must be/],
    ["me:secret@a", /^MILLRACE_BUS must be/],
    ["kafka://a:99999", /must name brokers as HOST:PORT,…, not "a:99999"/],
    ["kafka://a,,b", /must name brokers/],
    ["kafka://::1", /must name brokers/],
    ["kafka://me@a", /a user without a password/],
    ["kafka://me:%@a", /% as %25/],
    ["kafka://a/with space", /The prefix in MILLRACE_BUS/],
  ])("%s is refused", (bus, fault) => {
    expect(read(bus)).toEqual({ fault: expect.stringMatching(fault) as string });
  });

  test("shows no password of an address that it does not understand", () => {
    for (const wrong of ["amqp://me:secret@a", "kafka://me:a/b/secret@a", "kafka://me:p@secret@a"])
      expect(JSON.stringify(read(wrong))).not.toContain("secret");
  });
});
