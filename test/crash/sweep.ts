import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { violationsOf } from "./checks.ts";
import { runWorld, type WorldOptions } from "./world.ts";

export interface Verdict {
  /** Where it died, kill by kill. */
  readonly kills: readonly string[];
  readonly executions: number;
  readonly violations: readonly string[];
  /** False if three owners in a row died over the same thing, which was then left alone, by right. */
  readonly isJudged: boolean;
  /** From being started to listening, and to the first commit, in each life that got so far. */
  readonly listeningMs: readonly number[];
  readonly progressMs: readonly number[];
  /** How to see it again. */
  readonly command: string;
  /** Where its files are, if they were kept. */
  readonly folder?: string;
}

/** One world from its seed to its verdict. Its files stay if something is wrong, for whoever wants to know. */
export async function sweep(
  options: Omit<WorldOptions, "folder">,
  keep: "always" | "if it fails" | "never" = "if it fails",
): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-crash-"));
  const remainder = await runWorld({ ...options, folder });
  const { violations, commits, convicted } = violationsOf(options.seed, folder, remainder);
  for (const copy of [remainder.between, remainder.end, remainder.removed]) copy?.close();
  const isKept = keep === "always" || (keep === "if it fails" && violations.length > 0);
  if (!isKept) rmSync(folder, { recursive: true });
  const { lives, people } = remainder;
  const mutant = options.mutant === undefined ? "" : ` --mutant ${options.mutant}`;
  return {
    kills: lives.flatMap(({ killedAt }) => killedAt ?? []),
    executions: people.statuses.size,
    violations,
    isJudged: convicted.length === 0,
    listeningMs: lives.flatMap(({ startedAt, listenedAt }) => (listenedAt === undefined ? [] : listenedAt - startedAt)),
    progressMs: lives.flatMap(({ startedAt }, i) => {
      const first = commits.find((at) => at > startedAt);
      return first === undefined || first > (lives[i + 1]?.startedAt ?? Infinity) ? [] : first - startedAt;
    }),
    command: `npm run crash -- --seed ${options.seed} --failpoint ${options.failpoints.join(",")}${mutant}`,
    ...(isKept && { folder }),
  };
}
