import { expect, test } from "vitest";
import { endpointOf } from "./endpoint.ts";

const plain = { host: "localhost", port: 6379, isSecure: false, database: 0 };

test.each([
  ["redis://localhost", plain],
  ["redis://", plain],
  ["rediss://h:1", { ...plain, host: "h", port: 1, isSecure: true }],
  ["redis://[::1]:7000/3", { ...plain, host: "::1", port: 7000, database: 3 }],
  ["redis://:p%40ss@h/", { ...plain, host: "h", password: "p@ss" }],
  ["redis://me:it%2Fs@h", { ...plain, host: "h", user: "me", password: "it/s" }],
  ["unix:///run/my%20redis.sock", { ...plain, path: "/run/my redis.sock" }],
  ["unix://me:pw@/run/redis.sock?db=2", { ...plain, path: "/run/redis.sock", user: "me", password: "pw", database: 2 }],
])("%s", (url, endpoint) => {
  expect(endpointOf(url)).toEqual(endpoint);
});

test.each(["http://h", "redis://h/one", "redis://h/1.5", "unix:///s?db=one", "nonsense"])(
  "%s is no address of a Redis",
  (url) => {
    expect(() => endpointOf(url)).toThrow(TypeError);
  },
);
