import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SETTINGS } from "../settings/declarations.ts";
import type { Setting } from "../settings/setting.ts";
import { COMMANDS, COMMON_OPTIONS } from "./commands.ts";
import { parseArguments } from "./parse-arguments.ts";
import { commandsPage } from "./write-commands-page.ts";

describe("the table of commands", () => {
  test("has no name twice, and no option twice in a command", () => {
    const names = COMMANDS.flatMap(({ name, also }) => [name, ...also]);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, options, settings } of COMMANDS) {
      const flags = settings.map((setting) => (SETTINGS[setting] as Setting).flag);
      expect(flags, name).not.toContain(undefined);
      const all = [...[...options, ...COMMON_OPTIONS].map((option) => option.name), ...flags];
      expect(new Set(all).size, name).toBe(all.length);
    }
  });

  test("has a command behind every name", async () => {
    for (const { name, load } of COMMANDS) expect((await load()).verb, name).toBeTypeOf("function");
  });

  test("is what docs/cli.md says (npm run docs writes it)", () => {
    expect(readFileSync(join(import.meta.dirname, "../../docs/cli.md"), "utf8")).toBe(commandsPage());
  });
});

describe("a command line", () => {
  const cases: readonly [argv: readonly string[], parsed: object][] = [
    [["runs", "ls", "--limit", "3"], { name: "ls", args: [], options: { limit: ["3"] } }],
    [["--json", "show", "x"], { name: "show", args: ["x"], options: { json: true } }],
    [["--context", "prod", "--json", "ls"], { name: "ls", args: [], options: { json: true, context: ["prod"] } }],
    [["--config=a.json", "ls"], { name: "ls", options: { config: ["a.json"] } }],
    [["run", "-i", "{}", "f.yaml"], { name: "run", args: ["f.yaml"], options: { input: ["{}"] } }],
    [["run", "f.yaml", "--input=-"], { name: "run", args: ["f.yaml"], options: { input: ["-"] } }],
    [["signal", "x", "--", "--odd"], { name: "signal", args: ["x", "--odd"], options: {} }],
    [
      ["rerun", "x", "--from", "a", "--set", "b=1", "--set", "c=2"],
      { name: "rerun", options: { from: ["a"], set: ["b=1", "c=2"] } },
    ],
    [["dev", "--mock"], { name: "dev", flags: { mock: "true" } }],
    [["dev", "--no-mock"], { name: "dev", flags: { mock: "false" } }],
    [["dev", "--mock=false"], { name: "dev", flags: { mock: "false" } }],
    [["dlq", "--class", "poison"], { name: "dlq ls", options: { class: ["poison"] } }],
    [["validate", "-"], { name: "validate", args: ["-"] }],
  ];
  test.each(cases)("%j is read", (argv, expected) => {
    const { spec, ...parsed } = parseArguments(argv);
    expect({ name: spec.name, ...parsed }).toMatchObject(expected);
  });
});
