import { afterAll, expect, test } from "vitest";
import { cleanUp, folder, millrace } from "./program.ts";

afterAll(cleanUp);

const TWICE = `import { workflow } from "millrace";
const wf = workflow("twice");
const a = wf.node("a", () => 1);
const b = wf.node("a", () => 2);
export default wf.output({ a, b });
`;

test("what cannot be loaded is told with its place in the file that is wrong", async () => {
  const here = folder({
    "workflow.ts": 'import { a } from "./wrong.ts";\nexport default a;\n',
    "wrong.ts": "const b = 1;\nexport const a: number = ;\n",
    "exports.ts": 'import { b } from "./words.ts";\nexport default b;\n',
    "words.ts": "export const a = 1;\n",
    "throwing.ts": "const none: any = undefined;\nexport default none.deep;\n",
    "twice.ts": TWICE,
    "plain.mjs": 'import "./words.ts";\nimport { a } from "./wrong.mjs";\nexport default a;\n',
    "wrong.mjs": "export const a = 1;\nconst b = {;\n",
    "good.yaml": "name: good\nnodes: [{ id: a, handler: a }]\n",
    "handlers.ts": "export const handlers = {\n  a: () => 1;\n};\n",
  });
  const told = async (...args: readonly string[]): Promise<string> => (await millrace(args, { cwd: here })).stderr;
  expect(await told("run", "workflow.ts")).toMatch(
    /workflow\.ts cannot be loaded: wrong\.ts:2:26: Expression expected/,
  );
  expect(await told("run", "exports.ts")).toMatch(/cannot be loaded: exports\.ts:1:10: .*export named 'b'/);
  expect(await told("run", "throwing.ts")).toMatch(
    /cannot be loaded: throwing\.ts:2:21: Cannot read properties of undefined/,
  );
  expect(await told("run", "twice.ts")).toMatch(/cannot be loaded: twice\.ts:4:14: .*"a" is already the id/);
  expect(await told("run", "plain.mjs")).toMatch(/plain\.mjs cannot be loaded: wrong\.mjs:2:12: Unexpected token ';'/);
  expect(await told("validate", "good.yaml", "--handlers", "handlers.ts")).toMatch(/handlers\.ts:2:13: /);
});
