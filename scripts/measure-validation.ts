/**
 * Measures the validation of the largest definition that is accepted: `node scripts/measure-validation.ts [nodes] [parents]`.
 * Prints the size of the text, the time of each run and the peak memory of the process.
 */
import { readDefinition } from "../src/definition/read.ts";

const nodeCount = Number(process.argv[2] ?? 100_000);
const parentCount = Number(process.argv[3] ?? 10);
const withTemplates = process.argv[4] !== "plain";

/** Each node depends on the ones right before it and reads them all in one string. */
function largeDefinition(): string {
  const parts: string[] = [];
  for (let i = 0; i < nodeCount; i++) {
    const parents: string[] = [];
    for (let k = 1; k <= parentCount && i - k >= 0; k++) parents.push(`n${i - k}`);
    const dependencies = parents.map((id) => `"${id}"`).join(",");
    const value = withTemplates ? parents.map((id) => `{{ ${id} }}`).join("") : "";
    parts.push(`{"id":"n${i}","handler":"transform","config":{"value":"${value}"},"dependencies":[${dependencies}]}`);
  }
  return `{"name":"large","nodes":[\n${parts.join(",\n")}\n]}`;
}

const text = largeDefinition();
console.log(`${nodeCount} nodes, ${parentCount} parents each, ${(text.length / 1e6).toFixed(1)} MB of JSON`);
for (let run = 1; run <= 3; run++) {
  const start = performance.now();
  const { errors, warnings, hash } = readDefinition(text, { format: "json" });
  const ms = Math.round(performance.now() - start);
  console.log(`run ${run}: ${ms} ms, ${errors.length} errors, ${warnings.length} warnings, hash ${hash?.slice(0, 8)}`);
  if (errors[0] !== undefined) console.log(errors[0]);
}
console.log(`peak memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`);
