import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { handlersPage } from "../scripts/write-handlers.ts";
import { statesPage } from "../scripts/write-states.ts";
import { PERMISSIONS, permits, ROLES } from "../src/api/http/permissions.ts";
import { parseArguments } from "../src/cli/parse-arguments.ts";
import { NOT_RETRYABLE } from "../src/worker/error-value.ts";
import { KINDS } from "./world/kinds.ts";

const ROOT = join(import.meta.dirname, "..");

test("docs/states.md is what the move tables say (npm run docs writes it)", () => {
  expect(readFileSync(join(ROOT, "docs/states.md"), "utf8")).toBe(statesPage());
});

test("docs/handlers.md is what configs are checked by (npm run docs writes it)", () => {
  expect(readFileSync(join(ROOT, "docs/handlers.md"), "utf8")).toBe(handlersPage());
});

/** The commands that a page names, in blocks and in sentences. */
function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), "utf8").replaceAll("\\\n", " ");
  const blocks = [...text.matchAll(/```(?:sh|text)\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.split("\n"));
  const spans = [...text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/`([^`]+)`/g)].map(([, span]) => span!);
  return [...blocks, ...spans].flatMap(
    (line) => /^(?:npx |bin\/)?millrace (.+?)(?: +#.*| (?:&&|\|) .*)?$/.exec(line)?.[1] ?? [],
  );
}

const PAGES = globSync(["*.md", "docs/*.md", "examples/*/*.md"], { cwd: ROOT });

test("the pages name commands and options that there are", () => {
  const found: string[] = [];
  let count = 0;
  for (const page of PAGES) {
    for (const command of commandsOf(page)) {
      // `dev` shows a line of what it prints.
      if (command.startsWith(" ")) continue;
      count++;
      const words = [...command.matchAll(/'[^']*'|\S+/g)].map(([word]) => word.replaceAll("'", ""));
      try {
        parseArguments(words);
      } catch (error) {
        // A sentence may name a command without what it is to be called with.
        if (!/ is missing\.$| needs a value\.$/.test((error as Error).message)) {
          found.push(`${page}: millrace ${command}: ${(error as Error).message}`);
        }
      }
    }
  }
  expect(found).toEqual([]);
  expect(count).toBeGreaterThan(50);
});

test("the pages name scripts that there are", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: object };
  const named = PAGES.flatMap((page) => [...readFileSync(join(ROOT, page), "utf8").matchAll(/npm run ([a-z:-]+)/g)]);
  expect(named.map(([, script]) => script!).filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
});

test("ARCHITECTURE.md names files that there are", () => {
  const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const files = globSync(["src/**/*.ts", "test/**/*.ts"], { cwd: ROOT }).map((file) => `/${file}`);
  const named = [...page.matchAll(/`([a-z][a-z/-]*\.ts)`/g)].map(([, name]) => name!);
  expect(named.filter((name) => !files.some((file) => file.endsWith(`/${name}`)))).toEqual([]);
  expect(named.length).toBeGreaterThan(20);
});

test("docs/decisions/README.md lists every decision by its title", () => {
  const folder = join(ROOT, "docs/decisions");
  const titles = globSync("[0-9]*.md", { cwd: folder }).map((file) => {
    const [, number, title] = /^# (\d{4}) (.+)$/m.exec(readFileSync(join(folder, file), "utf8"))!;
    return `- [${number}](${file}) ${title}`;
  });
  const listed = readFileSync(join(folder, "README.md"), "utf8").match(/^- .+$/gm) ?? [];
  expect(listed.toSorted()).toEqual(titles.toSorted());
});

test("the pages link to files that there are", () => {
  const pages = [...PAGES, ...globSync(["docs/decisions/*.md", "bench/*.md"], { cwd: ROOT })];
  const dead = pages.flatMap((page) => {
    const links = [...readFileSync(join(ROOT, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)];
    return links.filter(([, to]) => !existsSync(join(ROOT, dirname(page), to!))).map(([, to]) => `${page}: ${to}`);
  });
  expect(dead).toEqual([]);
});

test("docs/sdk.md names the errors that are not tried again", () => {
  const page = readFileSync(join(ROOT, "docs/sdk.md"), "utf8");
  expect(page).toContain(`| ${[...NOT_RETRYABLE].map((name) => `\`${name}\``).join(", ")} | none:`);
});

test("docs/operations.md has every permission with the roles that grant it", () => {
  const page = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
  expect(page).toContain(`| Permission | Lets one | ${ROLES.join(" | ")} |`);
  for (const permission of PERMISSIONS) {
    const ticks = ROLES.map((role) => (permits([role], permission) ? " yes |" : " |")).join("");
    const [, row] = new RegExp(`^\\| \`${permission}\` \\| [^|]+ \\|(.*)$`, "m").exec(page) ?? [];
    expect([permission, row]).toEqual([permission, ticks]);
  }
});

test("the pages count the workflows that processes are killed under", () => {
  const page = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");
  expect(page("crash-sweep.md")).toContain(`one execution of each of ${KINDS.length} workflows`);
  expect(page("nemesis.md")).toContain(`'s ${KINDS.length} kinds through both APIs`);
});
