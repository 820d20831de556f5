import { expect, test } from "vitest";
import { secretsOf, withoutSecrets } from "./secrets.ts";

const env = { MILLRACE_SECRET_TOKEN: "s3cret", MILLRACE_SECRET_EMPTY: "", TOKEN: "another", PATH: "/bin" };

test("a secret is the variable of its name, and no other", () => {
  const secret = secretsOf(env);
  const names = ["TOKEN", "EMPTY", "token", "PATH", "", "constructor"];
  expect(names.map(secret)).toEqual(["s3cret", "", undefined, undefined, undefined, undefined]);
});

test("without its secrets a process has its other variables", () => {
  expect(withoutSecrets(env)).toEqual({ TOKEN: "another", PATH: "/bin" });
});
