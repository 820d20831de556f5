import { expect, test } from "vitest";
import { withoutSecrets } from "./secrets.ts";

test("without its secrets a process has its other variables", () => {
  const env = { MILLRACE_SECRET_TOKEN: "s3cret", MILLRACE_SECRET_EMPTY: "", TOKEN: "another", PATH: "/bin" };
  expect(withoutSecrets(env)).toEqual({ TOKEN: "another", PATH: "/bin" });
});
