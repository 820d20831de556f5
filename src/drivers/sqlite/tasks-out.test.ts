import { existsSync, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TasksOut } from "./tasks-out.ts";

/** A process that is gone without having closed it. */
function die(file: string, ...given: readonly string[]): void {
  const out = new TasksOut(file);
  out.given(given);
}

function newFile(): string {
  return join(mkdtempSync(join(tmpdir(), "millrace-out-")), "store.db.tasks");
}

test("the first death leaves the fact alone, and what is out from then on is lost with the next", () => {
  const file = newFile();
  die(file, "a");
  const second = new TasksOut(file);
  expect([...second.lost]).toEqual([]);
  second.given(["a", "b"]);
  second.returned(["a"]);
  expect([...new TasksOut(file).lost]).toEqual(["b"]);
});

test("what was lost stays noted until it is told, also when the store is closed in between", () => {
  const file = newFile();
  die(file);
  die(file, "a");
  const looking = new TasksOut(file);
  looking.close();
  const telling = new TasksOut(file);
  expect([...telling.lost]).toEqual(["a"]);
  telling.lost.delete("a");
  telling.returned(["a"]);
  telling.close();
  expect(existsSync(file)).toBe(false);
});

test("the file stays small however much comes and goes", () => {
  const file = newFile();
  die(file);
  const out = new TasksOut(file);
  const token = "t".repeat(100);
  out.given(["kept"]);
  for (let i = 0; i < 20_000; i++) {
    out.given([`${token}${i}`]);
    out.returned([`${token}${i}`]);
  }
  expect(statSync(file).size).toBeLessThan(1.1 * 1024 * 1024);
  expect([...new TasksOut(file).lost]).toEqual(["kept"]);
});
