import { DatabaseError } from "pg";
import { describe, expect, test } from "vitest";
import { StoreError } from "../../store/store-error.ts";
import { answerOf, faultOf, isCollision, whyRefused } from "./faults.ts";

function answer(code: string): DatabaseError {
  const error = new DatabaseError(`told ${code}`, 9, "error");
  error.code = code;
  return error;
}

describe("what the server answers has a name", () => {
  test.each([
    ["28P01", "STORE_FORBIDDEN"],
    ["42501", "STORE_FORBIDDEN"],
    ["3D000", "STORE_INVALID"],
    ["42P01", "STORE_INVALID"],
    ["42P10", "STORE_INVALID"],
    ["42804", "STORE_INVALID"],
    ["P0001", "STORE_INVALID"],
    ["26000", "STORE_UNAVAILABLE"],
    ["0A000", "STORE_UNAVAILABLE"],
    ["53100", "STORE_FULL"],
    ["53300", "STORE_UNAVAILABLE"],
    ["25006", "STORE_UNAVAILABLE"],
    ["57P01", "STORE_UNAVAILABLE"],
    ["57014", "STORE_UNAVAILABLE"],
    ["40P01", "STORE_UNAVAILABLE"],
    ["XX001", "STORE_CORRUPT"],
    ["XX000", "STORE_UNAVAILABLE"],
  ])("%s is %s", (code, name) => {
    const fault = faultOf(answer(code));
    expect(fault).toMatchObject({ name: "StoreError", code: name, message: `Postgres: told ${code}` });
    expect(answerOf(fault)?.code).toBe(code);
  });

  test.each(["22P05", "23505", "22012", "42601"])("%s is ours, and stays as it is", (code) => {
    const error = answer(code);
    expect(faultOf(error)).toBe(error);
  });
});

describe("what becomes of a connection has a name", () => {
  test.each([
    Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
    Object.assign(new Error(""), { code: "ETIMEDOUT" }),
    new Error("Connection terminated unexpectedly"),
    new Error("Connection terminated due to connection timeout"),
    new Error("Client has encountered a connection error and is not queryable"),
    new Error("Query read timeout"),
    new Error("timeout expired"),
    new Error("timeout exceeded when trying to connect"),
    new Error("Cannot use a pool after calling end on the pool"),
  ])("%s", (error) => {
    expect(faultOf(error)).toMatchObject({ code: "STORE_UNAVAILABLE", cause: error });
  });

  test("and a bug of ours has none", () => {
    const bug = new TypeError("undefined is not a function");
    expect([faultOf(bug), faultOf("text")]).toEqual([bug, "text"]);
    const known = new StoreError("STORE_TOO_NEW", "newer");
    expect(faultOf(known)).toBe(known);
  });
});

test("only what the server says it has not written is refused", () => {
  const codes = ["53100", "53200", "25006", "57014", "40001", "XX000", "23505"];
  expect(codes.filter((code) => whyRefused(faultOf(answer(code))) !== undefined)).toEqual(["53100", "53200", "25006"]);
});

test("transactions that were in each other's way may be tried again", () => {
  expect(["40001", "40P01", "57014", "23505"].filter((code) => isCollision(answer(code)))).toEqual(["40001", "40P01"]);
});
