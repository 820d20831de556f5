import { compile, type Compiled } from "../test/sdk/compile.ts";

/** What it costs TypeScript to check a large workflow, with about three parents a node. */
export function typeCost(nodes: number): Compiled {
  const lines = [
    'import { workflow } from "millrace";',
    'import { z } from "zod";',
    'const wf = workflow("large", { input: z.object({ text: z.string(), least: z.number() }) });',
    'const n0 = wf.node("n0", async ({ input }) => ({ v0: input.least, text: input.text }));',
  ];
  for (let i = 1; i < nodes; i++) {
    const parents = [...new Set([i - 1, Math.floor(i / 2), Math.max(0, i - 7)])].map((parent) => `n${parent}`);
    const sum = parents.map((parent) => `${parent}.${parent.replace("n", "v")}`).join(" + ");
    const names = parents.join(", ");
    lines.push(
      `const n${i} = wf.node("n${i}", { after: { ${names} }, timeout: "5s" }, ({ ${names} }) => ` +
        `({ v${i}: ${sum}, text: ${parents[0]}.text }));`,
    );
  }
  lines.push(`export const large = wf.output({ n${nodes - 1} });`);
  return compile({ "large.ts": lines.join("\n") });
}

if (process.argv[1] === import.meta.filename) {
  process.stdout.write("nodes  type instantiations  check time\n");
  for (const nodes of [1, 200, 1_000, 2_000]) {
    const { instantiations, checkSeconds } = typeCost(nodes);
    const columns = [String(nodes).padStart(5), instantiations.toLocaleString("en").padStart(19), `${checkSeconds} s`];
    process.stdout.write(`${columns.join("  ")}\n`);
  }
}
