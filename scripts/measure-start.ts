import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * How long a short command takes, against a bare Node in the same run: `--help` should stay within 2, `validate` within 5
 * times that, and `dev` be ready within 1.5 s. Printed, not asserted: a busy machine would fail it for no reason.
 */
const ROUNDS = 15;
const READY_ROUNDS = 5;
const root = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "millrace-start-"));
const json = join(folder, "workflow.json");
const yaml = join(folder, "workflow.yaml");
writeFileSync(
  yaml,
  "name: w\nnodes:\n  - { id: a, handler: http, config: { url: '{{ input.url }}' } }\n  - { id: b, handler: output, dependencies: [a], condition: 'a.status == 200.0' }\n",
);
writeFileSync(
  json,
  JSON.stringify({
    name: "w",
    nodes: [
      { id: "a", handler: "http", config: { url: "{{ input.url }}" } },
      { id: "b", handler: "output", dependencies: ["a"], condition: "a.status == 200.0" },
    ],
  }),
);

const bin = join(root, "bin", "millrace");
const programs: readonly (readonly [name: string, command: readonly string[], limit: number])[] = [
  ["node -e 0", [process.execPath, "-e", "0"], 1],
  ["millrace --help", [bin, "--help"], 2],
  ["millrace validate (JSON)", [bin, "validate", json], 5],
  ["millrace validate (YAML)", [bin, "validate", yaml], 5],
];

/** One after the other in every round, so that all of them see the same machine. */
const times = programs.map((): number[] => []);
for (let round = -1; round < ROUNDS; round++) {
  for (const [i, [, [program, ...args]]] of programs.entries()) {
    const startedAtMs = performance.now();
    const { status } = spawnSync(program!, args, { stdio: "ignore" });
    if (status !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${status}`);
    // The first round fills the compile cache.
    if (round >= 0) times[i]!.push(performance.now() - startedAtMs);
  }
}

/** From the command to the line with the address, on a store of its own. */
async function untilReady(): Promise<number> {
  const startedAtMs = performance.now();
  const dev = spawn(bin, ["dev", "--port", "0", "--no-watch", "--no-run"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve) => dev.stdout.on("data", (text: Buffer) => text.includes("http://") && resolve()));
  const tookMs = performance.now() - startedAtMs;
  const ended = new Promise((resolve) => dev.once("exit", resolve));
  dev.kill();
  await ended;
  return tookMs;
}

const ready: number[] = [];
for (let round = 0; round < READY_ROUNDS; round++) ready.push(await untilReady());
rmSync(folder, { recursive: true });

const middle = times.map((all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!);
for (const [i, [name, , limit]] of programs.entries()) {
  const ratio = middle[i]! / middle[0]!;
  const verdict = i === 0 ? "" : `  ${ratio.toFixed(1)} times, should be at most ${limit}`;
  process.stdout.write(`${name.padEnd(26)} ${middle[i]!.toFixed(0).padStart(5)} ms${verdict}\n`);
}
const readyMs = ready.toSorted((a, b) => a - b)[Math.floor(READY_ROUNDS / 2)]!;
const ratio = `${(readyMs / middle[0]!).toFixed(1)} times`;
process.stdout.write(
  `${"millrace dev, ready".padEnd(26)} ${readyMs.toFixed(0).padStart(5)} ms  ${ratio}, should be at most 1500 ms\n`,
);
