/**
 * The working tree beside an earlier commit: `npm run bench -- --against HEAD`. What a change is worth is told by pairs of turns, one of each
 * right after the other, since the machine of a minute ago is another machine.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Item, itemKey } from "./plan.ts";
import { figure, grid } from "./report/terminal.ts";
import { attempt, type TurnResult, type Urls } from "./run-turn.ts";
import { type Spread, spreadOf } from "./statistics.ts";
import { summarize } from "./summary.ts";

const ROOT = join(import.meta.dirname, "..");
const INSTALLED = ["node_modules", join("bench", "node_modules")];

/** A commit in a folder of its own, ready to be run. It stays there for the next time. */
function checkOut(revision: string): string {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  const commit = git("rev-parse", "--short", `${revision}^{commit}`);
  const tree = join(ROOT, "bench", ".against", commit);
  if (existsSync(join(tree, "node_modules"))) return tree;
  git("worktree", "prune");
  mkdirSync(join(ROOT, "bench", ".against"), { recursive: true });
  git("worktree", "add", "--detach", "--force", tree, commit);
  if (isSame(tree, "package-lock.json")) {
    for (const folder of INSTALLED) symlinkSync(join(ROOT, folder), join(tree, folder));
    return tree;
  }
  for (const cwd of [tree, join(tree, "bench")]) {
    const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd, stdio: "inherit" });
    if (status !== 0) throw new Error(`what ${commit} depends on could not be installed`);
  }
  return tree;
}

function isSame(tree: string, file: string): boolean {
  return readFileSync(join(tree, file), "utf8") === readFileSync(join(ROOT, file), "utf8");
}

/** One turn of each. */
interface Pair {
  readonly before: TurnResult;
  readonly now: TurnResult;
}

/** @param told called after each pair with all that is known */
export async function measureAgainst(
  revision: string,
  items: readonly Item[],
  pairs: number,
  urls: Urls,
  told: (table: string) => void,
): Promise<void> {
  const before = checkOut(revision);
  const found = new Map<Item, Pair[]>(items.map((item) => [item, []]));
  for (let round = 1; round <= pairs; round++) {
    for (const item of items) {
      const { entry, shape, measure } = item;
      process.stderr.write(`${itemKey(item, round)}\n`);
      const order = { entry: entry.name, shape: shape.name, measure };
      const turn = (tree: string): Promise<TurnResult | undefined> => attempt(order, urls, 0, tree);
      // By turns the one and the other first: who comes second finds a warmer machine, or a throttled one.
      const isFirst = round % 2 === 1;
      const one = await turn(isFirst ? before : ROOT);
      const other = await turn(isFirst ? ROOT : before);
      if (one === undefined || other === undefined) continue;
      found.get(item)!.push(isFirst ? { before: one, now: other } : { before: other, now: one });
    }
    told(againstTable(found));
  }
}

function againstTable(found: ReadonlyMap<Item, readonly Pair[]>): string {
  const head = ["", "shape", "pairs", "", "before", "now", "now ÷ before", "lowest–highest", "others' cores"];
  const rows = [...found].flatMap(([item, pairs]) => {
    if (pairs.length === 0) return [];
    const others = Math.max(...pairs.flatMap(({ before, now }) => [before.othersCores, now.othersCores])).toFixed(1);
    return figuresOf(item).map(([name, of]) => {
      const [before, now] = [pairs.map((pair) => of(pair.before)), pairs.map((pair) => of(pair.now))];
      const ratios = spreadOf(now.map((value, i) => value / before[i]!));
      const told = [before, now].map((values) => figure(spreadOf(values).median));
      const range = `${ratios.lowest.toFixed(2)}–${ratios.highest.toFixed(2)}`;
      return [
        item.entry.name,
        item.shape.name,
        `${pairs.length}`,
        name,
        ...told,
        ratios.median.toFixed(2),
        range,
        others,
      ];
    });
  });
  return grid([head, ...rows]);
}

type Figure = readonly [name: string, of: (result: TurnResult) => number];

function figuresOf(item: Item): readonly Figure[] {
  const median = (result: TurnResult, name: string): number =>
    (summarize(item, [result]) as unknown as Record<string, Spread>)[name]!.median;
  const names: readonly (readonly [string, string])[] =
    item.measure.kind === "throughput"
      ? [
          ["steps/s", "stepsPerSecond"],
          ["CPU s/1000 steps", "cpuPer1000Steps"],
        ]
      : [
          ["edge p50 ms", "edgeP50Ms"],
          ["edge p99 ms", "edgeP99Ms"],
          ["overhead a step ms", "overheadP50Ms"],
        ];
  return names.map(([label, name]): Figure => [label, (result) => median(result, name)]);
}
