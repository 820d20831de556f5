/**
 * Measures Millrace beside its peers and beside the limits of the machine: `npm run bench [-- --quick | --full]`.
 * bench/README.md says what is measured and how to read it.
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../scripts/services/postgres.ts";
import { startRedis } from "../scripts/services/redis.ts";
import { measureAgainst } from "./against.ts";
import { measureApi } from "./api/measure-api.ts";
import { ENTRIES } from "./entries.ts";
import { growthTable, measureGrowth } from "./growth.ts";
import { type Item, itemKey, type Mode, planOf } from "./plan.ts";
import { apiTable, tables } from "./report/terminal.ts";
import { machine, RESULTS, writeApi, writeGrowth, writeResults } from "./report/write-results.ts";
import { attempt, type TurnResult, type Urls } from "./run-turn.ts";
import { againstLimits, summarize, type Summary } from "./summary.ts";

const OPTIONS = {
  help: { type: "boolean", default: false },
  quick: { type: "boolean", default: false },
  full: { type: "boolean", default: false },
  /** Contenders, by name, instead of those that the mode has. */
  only: { type: "string", multiple: true, default: [] as string[] },
  shape: { type: "string", multiple: true, default: [] as string[] },
  /** What grows, instead of the contenders: all of it, or as named. */
  growth: { type: "boolean", default: false },
  axis: { type: "string", multiple: true, default: [] as string[] },
  /** Requests over HTTP, instead of the contenders. */
  api: { type: "boolean", default: false },
  /** Ours as they are now beside what they were in this commit, in so many pairs. */
  against: { type: "string" },
  pairs: { type: "string", default: "4" },
  /** A full run goes on where an earlier one was stopped, unless it shall begin anew; any other goes on if it is told to. */
  fresh: { type: "boolean", default: false },
  resume: { type: "boolean", default: false },
} as const;

function readArguments(): ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"] {
  try {
    const { values } = parseArgs({ options: OPTIONS });
    if (!values.help) return values;
  } catch (error) {
    process.exitCode = 2;
    console.error((error as Error).message);
  }
  console.log(
    `npm run bench -- [${Object.keys(OPTIONS)
      .map((name) => `--${name}`)
      .join("] [")}]\nSee bench/README.md.`,
  );
  process.exit();
}

const values = readArguments();
const mode: Mode = values.quick ? "quick" : values.full ? "full" : "default";
const plan = planOf(mode, values.only, values.shape);
type Results = ReadonlyMap<Item, readonly TurnResult[]>;
/** What was measured so far, one line for each turn: a run that was stopped can go on where it was. */
const notes = join(RESULTS, `${mode}.turns.jsonl`);

function installPeers(): void {
  if (existsSync(join(import.meta.dirname, "node_modules"))) return;
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { cwd: import.meta.dirname, stdio: "inherit" });
  if (status !== 0) throw new Error("the peers could not be installed");
}

function earlier(): Map<string, TurnResult> {
  const goesOn = mode === "full" ? !values.fresh : values.resume;
  if (!goesOn || !existsSync(notes)) return new Map();
  const lines = readFileSync(notes, "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line) as [string, TurnResult]));
}

/**
 * A B C A B C: what else the machine does hits all of them.
 *
 * @param told called after each round with all that is known: a long run that is stopped leaves something to look at
 */
async function rounds(urls: Urls, told: (results: Results) => void): Promise<void> {
  const known = earlier();
  if (known.size === 0) rmSync(notes, { force: true });
  const results = new Map<Item, TurnResult[]>(plan.items.map((item) => [item, []]));
  for (let round = 1; round <= plan.rounds; round++) {
    for (const item of plan.items) {
      const key = itemKey(item, round);
      const { entry, shape, measure } = item;
      process.stderr.write(`${key}\n`);
      const result = known.get(key) ?? (await attempt({ entry: entry.name, shape: shape.name, measure }, urls));
      if (result === undefined) continue;
      if (!known.has(key)) appendFileSync(notes, `${JSON.stringify([key, result])}\n`);
      results.get(item)!.push(result);
    }
    told(results);
  }
}

function summariesOf(results: Results): readonly Summary[] {
  const measured = [...results].filter(([, all]) => all.length > 0);
  return againstLimits(
    measured.map(([item, all]) => summarize(item, all)),
    ENTRIES,
  );
}

async function contenders(urls: Urls): Promise<void> {
  const settings = Object.fromEntries(
    ENTRIES.map(({ label, durability, settings }) => [label, `${durability}; ${settings}`]),
  );
  let summaries: readonly Summary[] = [];
  await rounds(urls, (results) => {
    summaries = summariesOf(results);
    writeResults(mode, summaries, settings);
  });
  const used = new Set(summaries.map(({ label }) => label));
  console.log(
    Object.entries(machine())
      .map(([name, value]) => `${name} ${value}`)
      .join(", "),
  );
  for (const [label, told] of Object.entries(settings)) if (used.has(label)) console.log(`${label}: ${told}`);
  console.log(tables(summaries));
}

async function growth(urls: Urls): Promise<void> {
  await measureGrowth(mode, values.axis, urls, (growths) => {
    console.log(growthTable(growths.slice(-1)));
    writeGrowth(mode, growths);
  });
}

async function api(): Promise<void> {
  const figures = await measureApi(mode);
  console.log(apiTable(figures));
  writeApi(mode, figures);
}

/** Each of ours, or those that are named, as it was and as it is. Nothing of it is kept: it is an answer to whoever changes something. */
async function against(revision: string, urls: Urls): Promise<void> {
  const ours = plan.items.filter(({ entry }) => entry.kind === "millrace" || values.only.length > 0);
  let table = "";
  const pairs = Number(values.pairs);
  if (!Number.isSafeInteger(pairs) || pairs < 1) throw new Error("--pairs takes a whole number from 1");
  await measureAgainst(revision, ours, pairs, urls, (text) => {
    table = text;
    process.stderr.write(`${text}\n`);
  });
  console.log(table);
}

installPeers();
mkdirSync(RESULTS, { recursive: true });
const [redis, postgres] = await Promise.all([
  startRedis({ shared: false }),
  startPostgres({ shared_buffers: "1GB", max_wal_size: "8GB", max_connections: "200", jit: "off" }),
]);
const urls: Urls = { redis: redis.url, postgres: postgres.url };
try {
  if (values.growth) await growth(urls);
  else if (values.api) await api();
  else if (values.against !== undefined) await against(values.against, urls);
  else await contenders(urls);
  if (values.against === undefined) console.log(`\nJSON and charts are in ${RESULTS}`);
} finally {
  await Promise.all([redis.stop(), postgres.stop()]);
}
